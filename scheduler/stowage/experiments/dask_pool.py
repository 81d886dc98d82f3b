"""Runs experiments on a Dask cluster: processes on this machine, or a cluster that exists."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from itertools import islice
from types import TracebackType
from typing import Any, Self

import dask
from distributed import Client, Future, KilledWorker, LocalCluster, Security, as_completed
from distributed.comm.addressing import get_address_host_port

from stowage.experiments import worker_process
from stowage.experiments.experiment import Experiment, Outcome, outcome_of
from stowage.experiments.pool import ClusterVanished

CONNECT_TIMEOUT_S = 10.0
CLOSE_TIMEOUT_S = 5.0
_ANY_LOCAL_PORT = "127.0.0.1:0"
_AHEAD = 4
_LEAST_AHEAD = 16


class DaskPool:
    """A connection to a Dask cluster.

    Experiments are sent as others end, a few for each thread of the cluster: an experiment carries
    its trace, and the scheduler of a large sweep could not hold them all.

    The experiments of a worker that dies are run again by another. An experiment ends when more
    than ``distributed.scheduler.allowed-failures`` workers (3) have died with it.

    Args:
        address: Of the scheduler; None starts processes on this machine.
        num_workers: Number of those processes.

    Raises:
        ClusterVanished: No scheduler answers at the address.
    """

    def __init__(self, address: str | None, num_workers: int) -> None:
        self._opened = ExitStack()
        self._running: dict[Future[Outcome], Experiment] = {}
        try:
            self._client = self._connect(address or self._start(num_workers))
        except BaseException:
            self._opened.close()
            raise

    def run(self, experiments: Iterable[Experiment]) -> Iterator[Outcome]:
        """See `Pool`."""
        waiting = iter(experiments)
        ended = as_completed(loop=self._client.loop)
        capacity = 0
        while True:
            if len(self._running) <= capacity // 2:
                capacity = self._capacity()
                for experiment in islice(waiting, capacity - len(self._running)):
                    future = self._client.submit(outcome_of, experiment, pure=False)
                    self._running[future] = experiment
                    ended.add(future)
            if not self._running:
                return
            future = next(ended)
            yield outcome_at_end(future, self._running.pop(future))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if self._running and not isinstance(error, ClusterVanished):
            with suppress(OSError):
                self._client.cancel(list(self._running), force=True)
        self._opened.close()

    def _start(self, num_workers: int) -> Any:
        # A worker gets its next experiment when it has ended one: whatever kills it, no other
        # experiment is suspected.
        with dask.config.set({"distributed.scheduler.worker-saturation": 1.0}):
            cluster = LocalCluster(
                n_workers=num_workers,
                threads_per_worker=1,
                # Dask's own HTTP pages, here only: without an address they take port 8787.
                dashboard_address=_ANY_LOCAL_PORT,
                worker_dashboard_address=_ANY_LOCAL_PORT,
                # Dask runs what any client sends. Other users of this machine reach the port, but
                # they do not have these certificates.
                security=Security.temporary(),
                preload=worker_process.__name__,
                silence_logs=logging.CRITICAL,
            )
        self._opened.callback(_close, cluster)
        return cluster

    def _connect(self, where: Any) -> Client:
        try:
            if isinstance(where, str):
                # A client that cannot even try to connect complains when it is collected.
                get_address_host_port(where)
            client = Client(where, timeout=CONNECT_TIMEOUT_S, set_as_default=False)
        except (OSError, ValueError) as error:
            raise ClusterVanished(f"no Dask scheduler answers at {where}: {error}") from error
        self._opened.callback(_close, client)
        return client

    def _capacity(self) -> int:
        """How many experiments may be at the cluster; new workers count."""
        try:
            num_threads: int = sum(self._client.nthreads().values())
        except OSError as error:
            raise ClusterVanished("the Dask scheduler is gone") from error
        return max(_LEAST_AHEAD, _AHEAD * num_threads)


def outcome_at_end(future: Future[Outcome], experiment: Experiment) -> Outcome:
    """The outcome of an experiment whose future has ended.

    Waits for another worker if the one that has the result has died since.

    Raises:
        ClusterVanished: The connection to the scheduler is lost.
    """
    error = future.exception()  # waits while the status is "lost"
    if future.status == "cancelled":
        raise ClusterVanished("the Dask scheduler is gone")
    if error is None:
        outcome: Outcome = future.result()
        return outcome
    reason = str(error) or type(error).__name__
    if isinstance(error, KilledWorker):
        reason = "each worker that ran it died, such as of a lack of memory"
    return Outcome(experiment.key, experiment.fingerprint, failure=reason)


def _close(opened: Any) -> None:
    """Close a cluster or client; one that does not answer is left alone."""
    # OSError: closed connections and timeouts. RuntimeError: the loop of Dask's thread has ended.
    with suppress(OSError, RuntimeError):
        opened.close(timeout=CLOSE_TIMEOUT_S)
