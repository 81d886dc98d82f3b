"""A named format of strings as a value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NamedFormat:
    """A format.

    Attributes:
        name: its name; formats with equal names are equal.
        problems: returns what is wrong with a string, nothing if it has the format.
        regex_size: length of the regular expression that a validation is charged for.
    """

    name: str
    problems: Callable[[str], list[str]]
    regex_size: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NamedFormat) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)
