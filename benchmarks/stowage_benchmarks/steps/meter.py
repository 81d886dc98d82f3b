"""The CPU time of the steps of the event loop, and of their parts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec


class Step(msgspec.Struct, frozen=True):
    """One step.

    Attributes:
        cpu_ms: Its CPU time.
        kind: The kind of its longest part.
        part_ms: The CPU time of that part.
    """

    cpu_ms: float = 0.0
    kind: str = ""
    part_ms: float = 0.0


class Meter:
    """Measures steps one after the other, each of which has parts of several kinds.

    Args:
        clock: Returns nanoseconds of CPU time.

    Attributes:
        longest: The longest step.
        num_steps: The number of steps.
    """

    def __init__(self, clock: Callable[[], int] = time.thread_time_ns) -> None:
        self._clock = clock
        self.longest = Step()
        self.num_steps = 0
        self._parts: list[tuple[int, str]] = []
        self._kind = ""
        self._began = 0

    @contextmanager
    def step(self, kind: str) -> Iterator[None]:
        """Measure this block as a step that begins with a part of this kind."""
        self._parts.clear()
        started = self._began = self._clock()
        self._kind = kind
        try:
            yield
        finally:
            self.enter("")
            self._note(self._began - started)

    def enter(self, kind: str) -> str:
        """End the current part of the step and begin another; returns the kind of the former."""
        now = self._clock()
        left = self._kind
        self._parts.append((now - self._began, left))
        self._kind, self._began = kind, now
        return left

    def _note(self, spent_ns: int) -> None:
        self.num_steps += 1
        if spent_ns > self.longest.cpu_ms * 1e6:
            part_ns, kind = max(self._parts)
            self.longest = Step(round(spent_ns / 1e6, 1), kind, round(part_ns / 1e6, 1))
