"""Work that is done in short steps: a generator that yields after each, and returns the result.

The attempt of a pod group may take seconds, and so may an event that moves a hundred thousand pods.
Between two steps the shell does other work, such as renewing its lease and reading watches; it
calls the engine only to take the next step.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeAlias, TypeVar

T = TypeVar("T")

Interruptible: TypeAlias = Generator[None, None, T]
"""Work in steps, with a result of type T."""


def finish(work: Interruptible[T]) -> T:
    """Take all steps at once; returns the result."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: T = end.value
            return result
