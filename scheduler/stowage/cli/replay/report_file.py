"""Writes an answer as a page that needs no other file."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO
from pathlib import Path

from rich.console import Console, RenderableType

_WIDTH = 160


def write_report(path: Path, parts: Sequence[RenderableType]) -> None:
    """Write the tables as HTML.

    Raises:
        OSError: The file cannot be written.
    """
    console = Console(file=StringIO(), record=True, highlight=False, width=_WIDTH)
    for each in parts:
        console.print(each, soft_wrap=isinstance(each, str))
    path.write_text(console.export_html(), encoding="utf-8")
