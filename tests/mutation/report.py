"""The figures of a sample: what was killed, by package and by operator, and how sure that is."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from tests.mutation.results import Outcome, Result

_Z_95 = 1.959964


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


def report(results: Sequence[Result], equivalent: frozenset[str]) -> Iterator[str]:
    """The lines of the report.

    Args:
        results: One result a mutant.
        equivalent: Keys of mutants that no test can kill: they are not counted.
    """
    yield from _table("package", results, lambda each: each.package, equivalent)
    yield ""
    yield from _table("operator", results, lambda each: each.operator, equivalent)


def _table(
    title: str,
    results: Sequence[Result],
    row_of: Callable[[Result], str],
    equivalent: frozenset[str],
) -> Iterator[str]:
    names = ("judged", "equivalent", "killed", "timeout", "survived")
    yield f"{title:<36}" + "".join(f"{name:>11}" for name in names) + "   killed of the rest"
    rows = sorted({row_of(each) for each in results})
    for row in rows:
        yield _line(row, [each for each in results if row_of(each) == row], equivalent)
    yield _line("all", results, equivalent)


def _line(name: str, results: Iterable[Result], equivalent: frozenset[str]) -> str:
    counted = Counter(
        "equivalent" if each.key in equivalent else each.outcome.value
        for each in results
        if each.outcome is not Outcome.NOT_APPLICABLE
    )
    killed = counted["killed"] + counted["timeout"]
    survived = counted["survived"] + counted["not covered"]
    figures = [counted.total(), counted["equivalent"], counted["killed"], counted["timeout"]]
    low, high = wilson_interval(killed, killed + survived)
    share = 100 * killed / max(1, killed + survived)
    columns = "".join(f"{figure:>11,}" for figure in [*figures, survived])
    return f"{name:<36}{columns}   {share:.1f} % ({100 * low:.1f} to {100 * high:.1f})"
