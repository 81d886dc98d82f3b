"""Flags written the way kube-scheduler's users write them."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Any

from typer.core import TyperCommand

_SHORT_WITH_EQUALS = re.compile(r"-([a-z])=(.*)", re.DOTALL)


class GoFlagsCommand(TyperCommand):
    """A command that also takes ``--leader-elect`` for ``--leader-elect=true`` and ``-v=2``."""

    boolean_flags = ("--leader-elect",)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Rewrite Go's notation before parsing."""
        return super().parse_args(ctx, [self._rewritten(argument) for argument in args])

    def _rewritten(self, argument: str) -> str:
        if argument in self.boolean_flags:
            return f"{argument}=true"
        short = _SHORT_WITH_EQUALS.fullmatch(argument)
        return f"-{short[1]}{short[2]}" if short else argument


class GoBool(StrEnum):
    """A boolean flag's value, spelled out."""

    TRUE = "true"
    FALSE = "false"
