"""Flags in Go's notation, as kube-scheduler's users write them."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Any

from typer.core import TyperCommand

_SHORT_WITH_EQUALS = re.compile(r"-([a-z])=(.*)", re.DOTALL)


class GoFlagsCommand(TyperCommand):
    """A command that also accepts ``--leader-elect`` for ``--leader-elect=true`` and ``-v=2``.

    Its help is plain text: Rich's tables would cut off long flag names.
    """

    boolean_flags = ("--leader-elect",)

    def __init__(self, *arguments: Any, **attributes: Any) -> None:
        super().__init__(*arguments, **{**attributes, "rich_markup_mode": None})

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Rewrite Go's notation before parsing."""
        return super().parse_args(ctx, [self._rewritten(argument) for argument in args])

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the flags by panel."""
        panels: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                panel = getattr(parameter, "rich_help_panel", None) or "Other"
                panels.setdefault(panel, []).append(record)
        for panel, records in panels.items():
            with formatter.section(panel):
                formatter.write_dl(records)

    def _rewritten(self, argument: str) -> str:
        if argument in self.boolean_flags:
            return f"{argument}=true"
        short = _SHORT_WITH_EQUALS.fullmatch(argument)
        return f"-{short[1]}{short[2]}" if short else argument


class GoBool(StrEnum):
    """The value of a boolean flag."""

    TRUE = "true"
    FALSE = "false"
