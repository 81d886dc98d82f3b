"""Keeps the outcome of each mutant in a file of JSON lines, one as soon as it is known."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Any

import msgspec

from tests.mutation.mutants import Mutant


class Outcome(enum.Enum):
    """What became of a mutant."""

    KILLED = "killed"
    TIMEOUT = "timeout"
    SURVIVED = "survived"
    NOT_COVERED = "not covered"
    NOT_APPLICABLE = "not applicable"
    """The change does not compile, or the loaded function cannot take it: not counted."""


class Result(msgspec.Struct, frozen=True, omit_defaults=True):
    """The outcome of one mutant.

    Attributes:
        key: The mutant's key.
        package: The package of the scheduler that holds it.
        operator: What made the change.
        change: The lines that differ, each with its sign.
        outcome: What became of it.
        killer: The test that failed.
        num_tests: How many tests ran.
        seconds: How long judging took.
    """

    key: str
    package: str
    operator: str
    change: tuple[str, ...]
    outcome: Outcome
    killer: str | None = None
    num_tests: int = 0
    seconds: float = 0.0

    @classmethod
    def of(cls, mutant: Mutant, change: list[str], outcome: Outcome, **more: Any) -> Result:
        """The result of a mutant."""
        return cls(mutant.key, mutant.package, mutant.operator, tuple(change), outcome, **more)


class Results:
    """The file of results; the last line about a mutant counts."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._latest: dict[str, Result] = {}
        if file.exists():
            with file.open("rb") as lines:
                for line in lines:
                    result = msgspec.json.decode(line, type=Result)
                    self._latest[result.key] = result

    def get(self, mutant: Mutant) -> Result | None:
        """The last result of a mutant."""
        return self._latest.get(mutant.key)

    def add(self, result: Result) -> None:
        """Append a result, so that an interruption loses nothing."""
        self._latest[result.key] = result
        with self._file.open("ab") as out:
            out.write(msgspec.json.encode(result) + b"\n")
        if result.outcome in (Outcome.SURVIVED, Outcome.NOT_COVERED):
            print(result.outcome.value, result.key, *result.change, sep="\n    ", flush=True)  # noqa: T201
