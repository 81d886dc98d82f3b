"""Writes an answer as a table, JSON or YAML."""

from __future__ import annotations

import sys
from collections.abc import Callable
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
"""Columns of a wide table: more than any has, so that no name is cut."""


Tables: TypeAlias = Callable[[Any, bool], list[RenderableType]]
"""Makes the tables of an answer; the flag asks for all of it."""


def plain_table(*columns: str, **options: Any) -> Table:
    """A table as kubectl prints it: without frames."""
    return Table(*columns, box=SIMPLE_HEAD, pad_edge=False, show_edge=False, **options)


def write_answer(answer: msgspec.Struct, output: OutputFormat, tables: Tables) -> None:
    """Write the answer to standard output."""
    if output is OutputFormat.JSON:
        encoded = msgspec.json.format(msgspec.json.encode(answer), indent=2)
        sys.stdout.write(f"{printable_json(encoded.decode())}\n")
    elif output is OutputFormat.YAML:
        yaml.safe_dump(msgspec.to_builtins(answer), sys.stdout, sort_keys=False)
    else:
        wide = output is OutputFormat.WIDE
        console = terminal(width=_WIDE if wide else None)
        for each in tables(answer, wide):
            console.print(each, soft_wrap=isinstance(each, str))
