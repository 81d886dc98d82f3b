"""Work in steps, for tests."""

from __future__ import annotations

from typing import TypeVar

from stowage.api.interruptible import Interruptible

T = TypeVar("T")


def counted(work: Interruptible[T]) -> tuple[int, T]:
    """Take all steps; returns how often the work let others go on, and its result."""
    number = 0
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: T = end.value
            return number, result
        number += 1
