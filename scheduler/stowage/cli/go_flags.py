"""Flags in Go's notation, as kube-scheduler's users write them."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Any

import typer

from stowage.api.config.feature_gates import GO_BOOLEANS
from stowage.cli.plain_help import PlainCommand

BOOLEAN = "true|false"
"""The metavar of boolean flags, which may be given without a value."""
_SHORT_WITH_EQUALS = re.compile(r"-([a-z])=(.*)", re.DOTALL)
_LONG = re.compile(r"(--[\w-]+)(=.*)?", re.DOTALL)


class GoFlagsCommand(PlainCommand):
    """A command that also accepts Go's notation of flags.

    These are ``--leader-elect`` for ``--leader-elect=true``, ``-v=2``, ``--secure_port``, and an
    empty value for a flag that is not set, as in ``--config=``.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Rewrite Go's notation before parsing."""
        flags = {flag: each for each in self.params for flag in each.opts}
        rewritten = [_rewritten(argument, flags) for argument in args]
        return super().parse_args(ctx, [each for each in rewritten if each is not None])


def _rewritten(argument: str, flags: dict[str, Any]) -> str | None:
    """The argument in the notation of the parser; None if it sets nothing."""
    short = _SHORT_WITH_EQUALS.fullmatch(argument)
    if short:
        return f"-{short[1]}{short[2]}"
    long = _LONG.fullmatch(argument)
    if long is None:
        return argument
    flag, value = long[1].replace("_", "-"), long[2] or ""
    parameter = flags.get(flag)
    if parameter is None:
        return argument
    if not value and parameter.metavar and parameter.metavar.startswith(BOOLEAN):
        return f"{flag}=true"
    if value == "=" and parameter.default is None:
        return None
    return f"{flag}{value}"


class GoBool(StrEnum):
    """The value of a boolean flag. A ``bool`` would make a flag that takes no value."""

    TRUE = "true"
    FALSE = "false"


def parse_boolean(text: str) -> GoBool:
    """The value of a boolean flag, in any notation that Go accepts."""
    value = GO_BOOLEANS.get(text)
    if value is None:
        raise typer.BadParameter(f"{text!r} is neither true nor false")
    return GoBool.TRUE if value else GoBool.FALSE


def is_true(value: GoBool | None) -> bool | None:
    """The value as a bool; None for a flag that is not given."""
    return None if value is None else value is GoBool.TRUE
