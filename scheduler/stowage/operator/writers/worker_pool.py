"""A queue of jobs and a bounded number of workers."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import structlog

from stowage.operator import clock
from stowage.operator.metrics.definitions import (
    WORKQUEUE_QUEUE_DURATION,
    WORKQUEUE_WORK_DURATION,
)
from stowage.operator.metrics.histogram import Histogram

Job = TypeVar("Job")

log = structlog.get_logger("stowage.operator.writers.worker_pool")


class WorkerPool(Generic[Job]):
    """Runs jobs in their order, at most `width` of them at a time.

    Each kind of work has its own pool, so that waiting events never delay a binding. A worker
    lives as long as there are jobs, so that a busy pool makes no task per job.

    Args:
        name: Name in logs.
        width: Maximum number of concurrent jobs.
        work: Runs one job.
        answer_fault: Reports the outcome of a job that raised an unexpected exception; None if the
            engine does not wait for an outcome.

    Attributes:
        name: Name in logs and metrics.
        num_added: Number of added jobs.
        waited_s: Seconds that jobs waited for a worker.
        worked_s: Seconds that jobs took.
    """

    def __init__(
        self,
        name: str,
        width: int,
        work: Callable[[Job], Awaitable[None]],
        answer_fault: Callable[[Job, Exception], Awaitable[None]] | None = None,
    ) -> None:
        self._answer_fault = answer_fault
        self.name = name
        self._width = width
        self._work = work
        self._waiting: deque[tuple[Job, float]] = deque()
        self._running: dict[int, float] = {}
        self.num_added = 0
        self.waited_s = Histogram(WORKQUEUE_QUEUE_DURATION.buckets)
        self.worked_s = Histogram(WORKQUEUE_WORK_DURATION.buckets)
        self._workers: set[asyncio.Task[None]] = set()
        self._num_running = 0
        self._num_unfinished = 0
        self._number = 0
        self._closed = False

    def __len__(self) -> int:
        """Number of waiting and running jobs."""
        return self._num_unfinished

    def add(self, job: Job) -> None:
        """Queue a job; ignored after `close`."""
        if self._closed:
            return
        self._waiting.append((job, clock.timer()))
        self.num_added += 1
        self._num_unfinished += 1
        if self._num_running < self._width:
            self._num_running += 1
            worker = asyncio.create_task(self._run(), name=self.name)
            self._workers.add(worker)
            worker.add_done_callback(self._workers.discard)

    @property
    def num_waiting(self) -> int:
        """Number of jobs that wait for a worker."""
        return len(self._waiting)

    def running_s(self) -> list[float]:
        """Seconds since the beginning of each running job."""
        now = clock.timer()
        return [now - started for started in self._running.values()]

    async def close(self, grace_s: float, *, finish_waiting: bool = False) -> int:
        """Drop the waiting jobs, and cancel the running ones after `grace_s`.

        Args:
            grace_s: How long jobs may still take.
            finish_waiting: Whether to drop the waiting jobs after `grace_s` only.

        Returns:
            The number of cancelled jobs: how they would have ended is unknown.
        """
        self._closed = True
        if not finish_waiting:
            self._drop_all_waiting()
        workers = list(self._workers)
        if not workers:
            return 0
        _, unfinished = await asyncio.wait(workers, timeout=grace_s)
        self._drop_all_waiting()
        for worker in unfinished:
            worker.cancel()
        await asyncio.gather(*unfinished, return_exceptions=True)
        return len(unfinished)

    def drop_waiting(self, is_obsolete: Callable[[Job], bool]) -> None:
        """Drop the jobs that nobody needs any more, and that no worker has begun."""
        kept = [waiting for waiting in self._waiting if not is_obsolete(waiting[0])]
        self._num_unfinished -= len(self._waiting) - len(kept)
        self._waiting = deque(kept)

    def _drop_all_waiting(self) -> None:
        self.drop_waiting(lambda _job: True)

    async def _run(self) -> None:
        try:
            while self._waiting:
                job, added = self._waiting.popleft()
                started = clock.timer()
                self.waited_s.observe(started - added)
                number = self._number = self._number + 1
                self._running[number] = started
                try:
                    await self._work(job)
                except Exception as fault:
                    # An unexpected exception of one job must not end the worker.
                    log.exception("job failed", pool=self.name, job=repr(job))
                    await self._report(job, fault)
                finally:
                    self._num_unfinished -= 1
                    del self._running[number]
                    self.worked_s.observe(clock.timer() - started)
        finally:
            self._num_running -= 1

    async def _report(self, job: Job, fault: Exception) -> None:
        if self._answer_fault is None:
            return
        try:
            await self._answer_fault(job, fault)
        except Exception:
            log.exception("job failed", pool=self.name, job=repr(job))
