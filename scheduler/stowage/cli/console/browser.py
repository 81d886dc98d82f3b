"""Opens the page in a browser without showing the token to other users."""

from __future__ import annotations

import html
import os
import tempfile
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def open_page(url: str) -> Iterator[None]:
    """Open an address in the default browser.

    The arguments of a browser are visible to all users of the machine. So it opens a file that only
    this user may read, and that leads to the address; it is removed at the end of the context.
    """
    descriptor, name = tempfile.mkstemp(prefix="stowage-console-", suffix=".html")
    path = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            address = html.escape(url, quote=True)
            file.write(
                "<!doctype html><title>Stowage</title>"
                f'<meta http-equiv="refresh" content="0; url={address}">'
            )
        webbrowser.open(path.as_uri())
        yield
    finally:
        path.unlink(missing_ok=True)
