"""Where experiments run: in this process, or on a Dask cluster."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack
from types import TracebackType
from typing import Protocol, Self

import msgspec

from stowage.experiments.experiment import Experiment, Outcome, outcome_of

WORTH_GROWING_S = 20.0
"""Processes are started when one process alone would take longer for the rest."""


class ClusterVanished(Exception):  # noqa: N818 - it names the finding
    """The Dask scheduler cannot be reached, or has forgotten the experiments."""


class PoolOptions(msgspec.Struct, frozen=True):
    """Where experiments run.

    Attributes:
        workers: Number of processes on this machine; with one, experiments run in this process.
            None for one a CPU as soon as that is worth their start, if Dask is installed.
        dask: Address of a Dask scheduler that has workers already; None for processes of our own.
    """

    workers: int | None = None
    dask: str | None = None


class Pool(Protocol):
    """Runs experiments."""

    def run(self, experiments: Iterable[Experiment]) -> Iterator[Outcome]:
        """Run experiments; yields how each ended, as they end.

        Raises:
            ClusterVanished: The cluster is gone; the experiments that have not ended are lost.
        """
        ...


class CallingProcess:
    """Runs one experiment after the other, here."""

    def run(self, experiments: Iterable[Experiment]) -> Iterator[Outcome]:
        """See `Pool`."""
        return map(outcome_of, experiments)


class GrowingPool:
    """Begins in this process, and takes more processes when the rest would take long.

    Args:
        grow: Starts the processes.
        clock: Returns seconds.
    """

    def __init__(
        self,
        grow: Callable[[], AbstractContextManager[Pool]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._grow = grow
        self._clock = clock
        self._opened = ExitStack()
        self._grown: Pool | None = None

    def run(self, experiments: Iterable[Experiment]) -> Iterator[Outcome]:
        """See `Pool`."""
        waiting = deque(experiments)
        began, num_ended = self._clock(), 0
        while waiting and self._grown is None:
            yield outcome_of(waiting.popleft())
            num_ended += 1
            if (self._clock() - began) / num_ended * len(waiting) > WORTH_GROWING_S:
                self._grown = self._opened.enter_context(self._grow())
        if self._grown is not None:
            yield from self._grown.run(waiting)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._opened.__exit__(kind, error, traceback)
