"""The random numbers of Go's ``math/rand``, which the published program drew its arrivals from."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray

_LEN, _TAP = 607, 273
_FEED = _LEN - _TAP
_M = 2**31 - 1
_MASK63, _MASK64 = 2**63 - 1, 2**64 - 1
_WARM_UP = 7_800_000_000_000
"""The steps after which Go's authors took the table that each seed is mixed with."""

_Words = NDArray[np.uint64]


class GoRandom:
    """An additive lagged Fibonacci generator, seeded as in Go.

    Args:
        seed: Any integer.

    Examples:
        >>> [GoRandom(1).next(), GoRandom(42).next()]
        [5577006791947779410, 3440579354231278675]
    """

    def __init__(self, seed: int) -> None:
        table = _table()
        self._state = [(a ^ b) & _MASK63 for a, b in zip(_words(seed, 20), table, strict=True)]
        self._tap, self._feed = 0, _FEED

    def next(self) -> int:
        """The next number of 63 bits; ``Int63``."""
        self._tap = (self._tap or _LEN) - 1
        self._feed = (self._feed or _LEN) - 1
        word = (self._state[self._feed] + self._state[self._tap]) & _MASK64
        self._state[self._feed] = word
        return word & _MASK63

    def draw(self, below: int) -> int:
        """A number of 0 to `below` - 1; ``Int31n``."""
        word = self.next() >> 32
        if below & (below - 1) == 0:
            return word & (below - 1)
        highest = _M - 2**31 % below
        while word > highest:
            word = self.next() >> 32
        return word % below

    def shuffle(self, items: list[object]) -> None:
        """Shuffle a list in place; ``Shuffle``."""
        for index in range(len(items) - 1, 0, -1):
            other = self._draw_to_shuffle(index + 1)
            items[index], items[other] = items[other], items[index]

    def permutation(self, length: int) -> list[int]:
        """The numbers below `length` in random order; ``Perm``."""
        order = [0] * length
        for index in range(length):
            other = self.draw(index + 1)
            order[index] = order[other]
            order[other] = index
        return order

    def _draw_to_shuffle(self, below: int) -> int:
        """A number below `below`; the unexported ``int31n``."""
        product = (self.next() >> 31) * below
        while product % 2**32 < 2**32 % below:
            product = (self.next() >> 31) * below
        return product >> 32


def _words(seed: int, shift: int) -> Iterator[int]:
    """The words of a seed: three numbers of a linear congruential generator each."""
    x = seed % _M or 89_482_311
    for _ in range(20):
        x = 48_271 * x % _M
    for _ in range(_LEN):
        word = 0
        for position in (2 * shift, shift, 0):
            x = 48_271 * x % _M
            word ^= x << position
        yield word & _MASK64


@cache
def _table() -> list[int]:
    """The state of a generator with the seed 1 after `_WARM_UP` steps.

    Number n of a generator is the sum of the numbers n - 273 and n - 607. So it is the sum of any
    607 consecutive numbers, each times a coefficient of ``x^k`` modulo ``x^607 - x^334 - 1``, where
    k is the distance from the first of them.
    """
    state = list(_words(1, 10))
    # Step n overwrites number n - 607 at this place with number n.
    places = [(_FEED - step) % _LEN for step in range(1, _LEN + 1)]
    numbers = [state[place] for place in places]
    for _ in range(_LEN - 1):
        numbers.append((numbers[-_TAP] + numbers[-_LEN]) & _MASK64)
    later = np.array(numbers, dtype=np.uint64)
    warmed_up = np.correlate(later, _power(_WARM_UP), mode="valid")
    table = [0] * _LEN
    for step, number in enumerate(warmed_up.tolist(), start=_WARM_UP + 1):
        table[(_FEED - step) % _LEN] = number
    return table


def _power(exponent: int) -> _Words:
    """The coefficients of ``x^exponent`` modulo ``x^607 - x^334 - 1`` and 2^64."""
    result = np.zeros(_LEN, dtype=np.uint64)
    result[0] = 1
    for bit in f"{exponent:b}":
        product = np.convolve(result, result)
        if bit == "1":
            product = np.concatenate([np.zeros(1, dtype=np.uint64), product])
        result = _reduced(product)
    return result


def _reduced(product: _Words) -> _Words:
    end = len(product)
    while end > _LEN:
        start = max(end - _TAP, _LEN)  # So no power is reduced to one of the same block.
        product[start - _TAP : end - _TAP] += product[start:end]
        product[start - _LEN : end - _LEN] += product[start:end]
        end = start
    return product[:_LEN].copy()
