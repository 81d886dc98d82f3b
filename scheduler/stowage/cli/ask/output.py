"""Writes an answer as a table, JSON or YAML."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import msgspec
import yaml
from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.table import Table

from stowage.api.values.printable import printable_json
from stowage.cli.ask.flags import OutputFormat
from stowage.cli.terminal import terminal

_WIDE = 10_000
"""Columns of a wide table, and of one in a pipe: more than any has, so that nothing is folded."""


Tables: TypeAlias = Callable[[Any, bool], list[RenderableType]]
"""Makes the tables of an answer; the flag asks for all of it."""


class _WholeNames(Table):
    """A table that folds what does not fit into a terminal, where rich cuts it."""

    def add_column(self, *arguments: Any, **options: Any) -> None:
        """Add a column, as `Table` does."""
        super().add_column(*arguments, **{"overflow": "fold", **options})


def plain_table(*columns: str, **options: Any) -> Table:
    """A table as kubectl prints it: without frames, every name whole."""
    return _WholeNames(*columns, box=SIMPLE_HEAD, pad_edge=False, show_edge=False, **options)


def write_answer(answer: msgspec.Struct, output: OutputFormat, tables: Tables) -> None:
    """Write the answer to standard output."""
    if output is OutputFormat.JSON:
        encoded = msgspec.json.format(msgspec.json.encode(answer), indent=2)
        sys.stdout.write(f"{printable_json(encoded.decode())}\n")
    elif output is OutputFormat.YAML:
        yaml.safe_dump(msgspec.to_builtins(answer), sys.stdout, sort_keys=False)
    else:
        wide = output is OutputFormat.WIDE
        _write_tables(tables(answer, wide), wide)


def _write_tables(parts: Sequence[RenderableType], wide: bool) -> None:
    """Write to a terminal, or without folds and blanks at the ends of lines into a pipe or file."""
    is_piped = not sys.stdout.isatty()
    console = terminal(width=_WIDE if wide or is_piped else None)
    for each in parts:
        if not is_piped or isinstance(each, str):
            console.print(each, soft_wrap=isinstance(each, str))
            continue
        with console.capture() as captured:
            console.print(each)
        sys.stdout.writelines(f"{line.rstrip()}\n" for line in captured.get().splitlines())
