"""Consoles that write text of others so that it cannot steer the terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
from rich.segment import Segment

from stowage.api.values.printable import printable


def terminal(**options: Any) -> Console:
    """A console whose texts have escapes in place of characters that are not printable.

    Names, reasons and messages are those of objects, recordings and other programs; an escape
    sequence in one would clear the screen, change the title, or show something else than is there.
    The styles of the console itself stay. Names between colons stay as well: ``file.yaml:100: ...``
    is a line of a file, and no emoji.

    Args:
        **options: Of rich's `Console`.
    """
    console = Console(highlight=False, emoji=False, **options)
    console.push_render_hook(_Escaping())
    return console


class _Escaping(RenderHook):
    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Escaped(each) for each in renderables]


class _Escaped:
    """Renders something else and escapes its texts."""

    def __init__(self, renderable: ConsoleRenderable) -> None:
        self._renderable = renderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        return _escaped(console.render(self._renderable, options))


def _escaped(segments: Iterable[Segment]) -> Iterable[Segment]:
    for text, style, control in segments:
        yield Segment(text if control else printable(text, "\n"), style, control)
