"""One random stream a purpose, so that more numbers for one purpose change no other."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

_BATCH = 512


def random_stream(seed: int, *purpose: str) -> np.random.Generator:
    """The generator of a seed for a purpose; the same in every process.

    Args:
        seed: 0 or more.
        purpose: Names, such as ``("arrivals", "web")``.
    """
    words = [len(each) for each in purpose]
    letters = [letter for each in purpose for letter in each.encode()]
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, *words, *letters])))


def tie_breaker(generator: np.random.Generator) -> Callable[[int], int]:
    """``choose(n)`` for an engine: an index below n."""
    batch: list[float] = []

    def choose(num_ties: int) -> int:
        if not batch:
            batch.extend(generator.random(_BATCH).tolist())
        return int(batch.pop() * num_ties)

    return choose
