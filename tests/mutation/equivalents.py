"""Mutants that no test can kill, with the reason of each."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path

import msgspec

from tests.mutation.results import Result

FILE = Path(__file__).with_name("equivalents.toml")


class Equivalent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A mutant that behaves as the original does.

    Attributes:
        file: The file, relative to ``scheduler/stowage``.
        function: The outermost function or method of the change.
        change: The lines that differ, each with its sign.
        reason: Why nothing that a test may ask differs.
    """

    file: str
    function: str
    change: tuple[str, ...]
    reason: str


def read() -> list[Equivalent]:
    """The listed mutants."""
    table = tomllib.loads(FILE.read_text(encoding="utf-8"))
    return msgspec.convert(table.get("equivalent", []), list[Equivalent])


def keys_of(listed: Iterable[Equivalent], results: Iterable[Result]) -> frozenset[str]:
    """The keys of the results that are listed."""
    known = {(f"scheduler/stowage/{each.file}", each.function, each.change) for each in listed}
    return frozenset(
        each.key for each in results if (*each.key.split(":")[:2], each.change) in known
    )
