"""Fast imports."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def garbage_collection_paused() -> Iterator[None]:
    """Import without garbage collection; the objects of modules live as long as the process."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


@contextmanager
def fast_imports() -> Iterator[None]:
    """Import what answers questions: without garbage collection, and the client without models."""
    # Imported late: the program starts with this module.
    from stowage.cli.lean_libraries import lean_client  # noqa: PLC0415

    with garbage_collection_paused(), lean_client():
        yield
