"""The recorded figures: their types, their file, and the comparison with fresh ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

import msgspec

FILE = Path(__file__).with_name("figures.json")
NOTEWORTHY = 1.25
"""A figure with at least this ratio is marked."""


class Machine(msgspec.Struct, frozen=True):
    """The machine that the figures were measured on."""

    processor: str
    cores: int
    python: str


class Figure(msgspec.Struct, frozen=True):
    """CPU time in milliseconds of one measurement, and of the calibration loop, in every run."""

    name: str
    cpu_ms: list[float]
    calibration_ms: list[float]

    @property
    def relative(self) -> float:
        """The median run, in units of the calibration loop."""
        return median(self.cpu_ms) / median(self.calibration_ms)

    @property
    def spread(self) -> float:
        """The slowest run divided by the fastest."""
        return max(self.cpu_ms) / min(self.cpu_ms)


class Figures(msgspec.Struct, frozen=True):
    """All figures of one day and machine."""

    date: str
    machine: Machine
    figures: list[Figure]


class Comparison(NamedTuple):
    """A recorded and a fresh figure; `ratio` above 1 is slower than recorded."""

    recorded: Figure
    fresh: Figure
    ratio: float

    @property
    def is_noteworthy(self) -> bool:
        """Whether the change is larger than the spread between runs."""
        noise = max(self.recorded.spread, self.fresh.spread, NOTEWORTHY)
        return not 1 / noise <= self.ratio <= noise


def compare(recorded: Sequence[Figure], fresh: Sequence[Figure]) -> Iterator[Comparison]:
    """Pair figures by name; leave out names that only one side has."""
    by_name = {figure.name: figure for figure in recorded}
    for figure in fresh:
        known = by_name.get(figure.name)
        if known is not None:
            yield Comparison(known, figure, figure.relative / known.relative)


def load() -> Figures:
    """Read the recorded figures.

    Raises:
        FileNotFoundError: none have been recorded.
    """
    return msgspec.json.decode(FILE.read_bytes(), type=Figures)


def save(figures: Figures) -> None:
    """Replace the recorded figures."""
    FILE.write_bytes(msgspec.json.format(msgspec.json.encode(figures), indent=1) + b"\n")
