"""Where experiments run: in this process, or on a Dask cluster."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

import msgspec

from stowage.experiments.experiment import Experiment, Outcome, outcome_of
from stowage.experiments.extra import import_extra, is_installed


class ClusterVanished(Exception):  # noqa: N818 - it names the finding
    """The Dask scheduler cannot be reached, or has forgotten the experiments."""


class PoolOptions(msgspec.Struct, frozen=True):
    """Where experiments run.

    Attributes:
        workers: Number of processes on this machine; None for one a CPU, or for this process alone
            if Dask is not installed. With one, experiments run in this process.
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


def open_pool(options: PoolOptions, num_experiments: int) -> AbstractContextManager[Pool]:
    """A pool, which is closed at the end of the ``with`` statement.

    Args:
        options: Where experiments run.
        num_experiments: Most that run at a time; no more processes are started.

    Raises:
        MissingExtra: Dask is needed and not installed.
        ClusterVanished: No scheduler answers at the address.
    """
    num_workers = min(_num_workers(options), num_experiments)
    if options.dask is None and num_workers <= 1:
        return nullcontext(CallingProcess())
    flag = "--dask" if options.dask is not None else f"--workers {num_workers}"
    import_extra("distributed", flag)
    # Dask takes two seconds to import: not for those who need none.
    from stowage.experiments.dask_pool import DaskPool  # noqa: PLC0415

    _silence_dask()
    return DaskPool(options.dask, num_workers)


def _num_workers(options: PoolOptions) -> int:
    if options.workers is not None:
        return options.workers
    return len(os.sched_getaffinity(0)) if is_installed("distributed") else 1


def _silence_dask() -> None:
    """Dask logs each lost connection; what matters is in the outcome or in an exception."""
    for name in tuple(logging.root.manager.loggerDict):
        if name.partition(".")[0] in ("distributed", "tornado"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
