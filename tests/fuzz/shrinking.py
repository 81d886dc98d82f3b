"""Makes an input that fails smaller, as long as it fails in the same way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

InputT = TypeVar("InputT")

MAX_TRIES = 400


def shrunk(given: InputT, fails: Callable[[InputT], bool], max_tries: int = MAX_TRIES) -> InputT:
    """The smallest input that was found to fail.

    Args:
        given: Text, bytes, or a tuple of such, that fails.
        fails: Whether an input fails in the same way.
        max_tries: Most calls of `fails`.
    """
    num_tries = 0
    best: Any = given
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for smaller in _smaller(best):
            num_tries += 1
            if num_tries > max_tries:
                return best  # type: ignore[no-any-return]
            if fails(smaller):
                best, is_smaller = smaller, True
                break
    return best  # type: ignore[no-any-return]


def _smaller(value: Any) -> Iterator[Any]:
    """The value without some part, large parts first."""
    if isinstance(value, tuple):
        for index, each in enumerate(value):
            for smaller in _smaller(each):
                yield (*value[:index], smaller, *value[index + 1 :])
    elif isinstance(value, str):
        yield from map("".join, _cut(list(value)))
    elif isinstance(value, bytes):
        yield from map(bytes, _cut(list(value)))


def _cut(value: list[InputT]) -> Iterator[list[InputT]]:
    """The list without each half, each quarter and so on."""
    if value:
        size = len(value) // 2 or len(value)
        while size:
            for start in range(0, len(value), size):
                yield value[:start] + value[start + size :]
            size //= 2
