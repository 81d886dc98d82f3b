"""Help as plain text: every name is whole, and no line is longer than 80 columns.

Rejected: Rich's tables, which cut flag names in a narrow terminal.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterable
from enum import Enum
from typing import Any

from typer.core import TyperCommand, TyperGroup

from stowage.cli.flag_coercion import read_flags_directly

Records = Iterable[tuple[str, str]]
_TEXT_INDENT = " " * 4


class PlainCommand(TyperCommand):
    """A command with plain help: its arguments, then its flags by panel."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, which read their values without Pydantic."""
        return read_flags_directly(super().get_params(ctx))

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """What follows the command in its usage: ``[OPTIONS] FILE...``."""
        arguments = [each for each in self.get_params(ctx) if each.param_type_name == "argument"]
        pieces = [
            name if each.required or name.endswith("]") else f"[{name}]"
            for each in arguments
            for name in [argument_name(each)]
        ]
        return [self.options_metavar or "", *pieces]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments and the flags."""
        _write_parameters(self, ctx, formatter)


class PlainGroup(TyperGroup):
    """A group with plain help: its flags, then its commands by panel; the epilog as it is."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, which read their values without Pydantic."""
        return read_flags_directly(super().get_params(ctx))

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the flags and the commands."""
        _write_parameters(self, ctx, formatter)
        panels: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            command: Any = self.get_command(ctx, name)
            if not command.hidden:
                summary = " ".join((command.help or "").partition("\n\n")[0].split())
                panels.setdefault(_panel(command, "Commands"), []).append((name, summary))
        for panel, records in panels.items():
            with formatter.section(panel):
                formatter.write_dl(records)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - click's signature
        """Write the epilog without wrapping it."""
        if self.epilog:
            formatter.write_paragraph()
            formatter.write(f"{self.epilog}\n")


def _write_parameters(command: Any, ctx: Any, formatter: Any) -> None:
    panels: dict[str, list[tuple[str, str]]] = {}
    for parameter in command.get_params(ctx):
        own = "Options"
        if parameter.param_type_name == "option" and not parameter.is_flag:
            parameter.metavar = value_name(parameter)
        record = parameter.get_help_record(ctx)
        if parameter.param_type_name == "argument":
            own, record = "Arguments", (argument_name(parameter), record[1])
        if record is not None:
            panels.setdefault(_panel(parameter, own), []).append(record)
    for panel, records in panels.items():
        with formatter.section(panel):
            _write_records(formatter, records)


def value_name(option: Any) -> str:
    """What stands for the value of a flag in help: its own name, its choices, or its type."""
    if option.metavar:
        return str(option.metavar)
    kind = option.type_descriptor.annotation
    if inspect.isclass(kind) and issubclass(kind, Enum):
        return "|".join(str(choice.value) for choice in kind)
    kind = next(iter(getattr(kind, "__args__", ())), kind)  # list[str] is given several times
    return {int: "INT", float: "FLOAT", str: "TEXT"}.get(kind, "FILE")


def argument_name(argument: Any) -> str:
    """The name of an argument, with dots if there may be several."""
    name: str = argument.metavar or argument.name.upper()
    return name if argument.nargs == 1 or "..." in name else f"{name}..."


def _panel(item: Any, default: str) -> str:
    return getattr(item, "rich_help_panel", None) or default


def _write_records(formatter: Any, records: Records) -> None:
    """Write each name on a line of its own, and its text indented below."""
    indent = " " * formatter.current_indent
    wrapper = textwrap.TextWrapper(
        formatter.width,
        initial_indent=f"{indent}{_TEXT_INDENT}",
        subsequent_indent=f"{indent}{_TEXT_INDENT}",
        break_on_hyphens=False,
        break_long_words=False,
    )
    for name, text in records:
        formatter.write(f"{indent}{name}\n{wrapper.fill(text)}\n")
