"""Writes an answer as a page that needs no other file."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO
from pathlib import Path

from rich.console import RenderableType

from stowage.cli.terminal import terminal

_WIDTH = 160


def write_report(path: Path, parts: Sequence[RenderableType]) -> None:
    """Write the tables as HTML.

    Raises:
        OSError: The file cannot be written.
    """
    console = terminal(file=StringIO(), record=True, width=_WIDTH)
    for each in parts:
        console.print(each, soft_wrap=isinstance(each, str))
    path.write_text(console.export_html(), encoding="utf-8")
