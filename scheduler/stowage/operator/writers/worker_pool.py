"""A queue of jobs and a bounded number of workers."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import structlog

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
    """

    def __init__(
        self,
        name: str,
        width: int,
        work: Callable[[Job], Awaitable[None]],
        answer_fault: Callable[[Job, Exception], Awaitable[None]] | None = None,
    ) -> None:
        self._answer_fault = answer_fault
        self._name = name
        self._width = width
        self._work = work
        self._waiting: deque[Job] = deque()
        self._workers: set[asyncio.Task[None]] = set()
        self._num_running = 0
        self._num_unfinished = 0
        self._closed = False

    def __len__(self) -> int:
        """Number of waiting and running jobs."""
        return self._num_unfinished

    def add(self, job: Job) -> None:
        """Queue a job; ignored after `close`."""
        if self._closed:
            return
        self._waiting.append(job)
        self._num_unfinished += 1
        if self._num_running < self._width:
            self._num_running += 1
            worker = asyncio.create_task(self._run(), name=self._name)
            self._workers.add(worker)
            worker.add_done_callback(self._workers.discard)

    async def close(self, grace_s: float) -> None:
        """Drop the waiting jobs, and cancel the running ones after `grace_s`."""
        self._closed = True
        self._num_unfinished -= len(self._waiting)
        self._waiting.clear()
        workers = list(self._workers)
        if not workers:
            return
        _, unfinished = await asyncio.wait(workers, timeout=grace_s)
        for worker in unfinished:
            worker.cancel()
        await asyncio.gather(*unfinished, return_exceptions=True)

    async def _run(self) -> None:
        try:
            while self._waiting:
                job = self._waiting.popleft()
                try:
                    await self._do(job)
                except Exception:
                    # An unexpected exception of one job must not end the worker.
                    log.exception("job failed", pool=self._name, job=repr(job))
                finally:
                    self._num_unfinished -= 1
        finally:
            self._num_running -= 1

    async def _do(self, job: Job) -> None:
        try:
            await self._work(job)
        except Exception as fault:
            if self._answer_fault is None:
                raise
            log.exception("job failed", pool=self._name, job=repr(job))
            await self._answer_fault(job, fault)
