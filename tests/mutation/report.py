"""The figures of a sample: what was killed, by package and by operator, and how sure that is."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from tests.mutation.results import Outcome, Result

_Z_95 = 1.959964


class Row(msgspec.Struct, frozen=True):
    """The figures of one package or operator.

    Attributes:
        name: Of the package or operator.
        judged: How many mutants were judged.
        equivalent: Those of them that are listed as such, and count no further.
        killed: Those that a test noticed by an assertion or an exception.
        timeout: Those that a test noticed by not ending.
        survived: Those that no test noticed.
    """

    name: str
    judged: int
    equivalent: int
    killed: int
    timeout: int
    survived: int

    @property
    def share(self) -> str:
        """Killed or timed out, of all but the equivalent, with the 95 % interval."""
        killed, counted = self.killed + self.timeout, self.judged - self.equivalent
        low, high = wilson_interval(killed, counted)
        percent = 100 * killed / max(1, counted)
        return f"{percent:.1f} % ({100 * low:.1f} to {100 * high:.1f})"


class Report(msgspec.Struct, frozen=True):
    """The figures of a sample, as they are kept for the documents."""

    date: str
    seed: int
    mutants: int
    packages: list[Row]
    operators: list[Row]

    def lines(self) -> Iterator[str]:
        """The report as text."""
        yield f"{self.mutants:,} mutants, {self.packages[-1].judged:,} judged, seed {self.seed}"
        for title, rows in (("package", self.packages), ("operator", self.operators)):
            yield ""
            yield f"{title:<36}" + "".join(f"{name:>11}" for name in _COUNTS) + "   killed"
            for row in rows:
                columns = "".join(f"{getattr(row, name):>11,}" for name in _COUNTS)
                yield f"{row.name:<36}{columns}   {row.share}"


_COUNTS = ("judged", "equivalent", "killed", "timeout", "survived")


def wilson_interval(num_killed: int, num_judged: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share.

    Examples:
        >>> [round(100 * end, 1) for end in wilson_interval(60, 66)]
        [81.6, 95.8]
    """
    if not num_judged:
        return 0.0, 1.0
    share = num_killed / num_judged
    weight = _Z_95**2 / num_judged
    centre = (share + weight / 2) / (1 + weight)
    spread = math.sqrt(share * (1 - share) * weight + weight**2 / 4) / (1 + weight)
    return max(0.0, centre - spread), min(1.0, centre + spread)


def rows_by(
    name_of: Callable[[Result], str], results: Sequence[Result], equivalent: frozenset[str]
) -> list[Row]:
    """A row for each name, and one for all.

    Args:
        name_of: Returns the row of a result.
        results: One result a mutant.
        equivalent: Keys of mutants that no test can kill.
    """
    names = sorted({name_of(each) for each in results})
    rows = [_row(name, [x for x in results if name_of(x) == name], equivalent) for name in names]
    return [*rows, _row("all", results, equivalent)]


def _row(name: str, results: Iterable[Result], equivalent: frozenset[str]) -> Row:
    counts = Counter(
        None if each.key in equivalent else each.outcome
        for each in results
        if each.outcome is not Outcome.NOT_APPLICABLE
    )
    survived = counts[Outcome.SURVIVED] + counts[Outcome.NOT_COVERED]
    killed, timeout = counts[Outcome.KILLED], counts[Outcome.TIMEOUT]
    return Row(name, counts.total(), counts[None], killed, timeout, survived)
