"""``python -m tests.fuzz``: try many inputs; print their number and each that failed."""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from random import Random

from tests.fuzz import objects, texts
from tests.fuzz.trials import (
    EngineTrial,
    try_cel_selector,
    try_field_selector,
    try_label_selector,
    try_quantity,
)

#: Pairs of a generator of texts and the trial of its texts.
TEXT_TRIALS: tuple[tuple[str, Callable[[Random], str], Callable[[str], bool]], ...] = (
    ("quantities", texts.quantity, try_quantity),
    ("label selectors", texts.label_selector, try_label_selector),
    ("field selectors", texts.field_selector, try_field_selector),
    ("CEL selectors", texts.cel_selector, try_cel_selector),
)
_MAX_SHOWN = 20
_OBJECTS_PER_ENGINE = 200


class Tally:
    """Counts the inputs and the failures, and keeps the slowest input."""

    def __init__(self) -> None:
        self.tried: Counter[tuple[str, str]] = Counter()
        self.num_failed = 0
        self.slowest: tuple[float, str] = (0.0, "")

    def run(self, what: str, shown: Callable[[], str], trial: Callable[[], bool]) -> None:
        """Run one trial; print and count any exception."""
        started = time.process_time()
        try:
            outcome = "accepted" if trial() else "rejected"
        except Exception:
            outcome = "FAILED"
            self.num_failed += 1
            if self.num_failed <= _MAX_SHOWN:
                print(f"--- {what}: {shown()}\n{traceback.format_exc(limit=-4)}")  # noqa: T201
        self.tried[what, outcome] += 1
        self.slowest = max(
            self.slowest, (time.process_time() - started, f"{what}: {shown()[:200]}")
        )

    def lines(self) -> Iterator[str]:
        """The lines of the summary."""
        for (what, outcome), times in sorted(self.tried.items()):
            yield f"{what:16} {outcome:16} {times:>9,}"
        yield f"slowest: {self.slowest[0] * 1e3:.1f} ms, {self.slowest[1]}"


def try_texts(tally: Tally, number: int, seed: int) -> None:
    """Try `number` quantities and selectors in turn."""
    rng = Random(seed)
    for index in range(number):
        what, make, trial = TEXT_TRIALS[index % len(TEXT_TRIALS)]
        text = make(rng)
        tally.run(what, lambda text=text: repr(text), lambda text=text, trial=trial: trial(text))  # type: ignore[misc]


def try_objects(tally: Tally, number: int, seed: int) -> None:
    """Try `number` objects: decode each, then pass it to an engine."""
    rng = Random(seed)
    engine = EngineTrial()
    for index in range(number):
        kind, data = objects.odd_object(rng)
        tally.run(
            kind,
            lambda data=data: repr(data),  # type: ignore[misc]
            lambda kind=kind, data=data: engine.try_object(kind, data),  # type: ignore[misc]
        )
        if index % _OBJECTS_PER_ENGINE == _OBJECTS_PER_ENGINE - 1 or index == number - 1:
            tally.run("engine", lambda: "", engine.check)


def main() -> int:
    """Parse the flags and run; return 1 if an input failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--texts", type=int, default=30_000, help="quantities and selectors")
    parser.add_argument("--objects", type=int, default=3_000, help="objects of the API")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    tally = Tally()
    try_texts(tally, options.texts, options.seed)
    try_objects(tally, options.objects, options.seed)
    print("\n".join(tally.lines()))  # noqa: T201
    return 1 if tally.num_failed else 0


if __name__ == "__main__":
    sys.exit(main())
