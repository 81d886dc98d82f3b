"""Worker pools bound the number of concurrent jobs."""

from __future__ import annotations

import asyncio

from structlog.testing import capture_logs

from stowage.operator.writers.worker_pool import WorkerPool
from tests.unit.operator.tasks import let_tasks_run


class _Jobs:
    """Jobs that end when the test lets them."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.open = asyncio.Event()

    async def work(self, job: int) -> None:
        self.begun.append(job)
        await self.open.wait()


async def test_jobs_start_in_order_and_at_most_as_many_as_workers_run_at_once() -> None:
    jobs = _Jobs()
    pool = WorkerPool("test", 2, jobs.work)
    for job in range(5):
        pool.add(job)
    await let_tasks_run()
    assert jobs.begun == [0, 1]
    assert len(pool) == 5
    jobs.open.set()
    await let_tasks_run()
    assert jobs.begun == [0, 1, 2, 3, 4]
    assert len(pool) == 0


async def test_a_job_added_while_the_last_worker_ends_runs() -> None:
    done: list[int] = []

    async def work(job: int) -> None:
        done.append(job)
        if job < 3:
            asyncio.get_running_loop().call_soon(pool.add, job + 1)

    pool = WorkerPool("test", 1, work)
    pool.add(0)
    await let_tasks_run()
    assert done == [0, 1, 2, 3]


async def test_a_job_that_fails_does_not_stop_the_pool() -> None:
    done: list[int] = []

    async def work(job: int) -> None:
        if job == 0:
            raise RuntimeError("unforeseen")
        done.append(job)

    pool = WorkerPool("test", 1, work)
    pool.add(0)
    pool.add(1)
    with capture_logs() as logs:
        await let_tasks_run()
    assert done == [1]
    line = {"event": "job failed", "log_level": "error", "exc_info": True}
    assert logs == [line | {"pool": "test", "job": "0"}]


async def test_obsolete_jobs_are_dropped_if_they_have_not_begun() -> None:
    jobs = _Jobs()
    pool = WorkerPool("test", 2, jobs.work)
    for job in range(5):
        pool.add(job)
    await let_tasks_run()
    pool.drop_waiting(lambda job: job in (1, 3))
    assert (len(pool), pool.num_waiting) == (4, 2)
    jobs.open.set()
    await let_tasks_run()
    assert jobs.begun == [0, 1, 2, 4]
    assert len(pool) == 0


async def test_closing_drops_waiting_jobs_and_cancels_running_ones() -> None:
    jobs = _Jobs()
    pool = WorkerPool("test", 1, jobs.work)
    pool.add(0)
    pool.add(1)
    await let_tasks_run()
    assert await pool.close(grace_s=0.0) == 1
    pool.add(2)
    await let_tasks_run()
    assert jobs.begun == [0]
    assert len(pool) == 0


async def test_closing_may_finish_the_waiting_jobs() -> None:
    done: list[int] = []

    async def work(job: int) -> None:
        await asyncio.sleep(0)
        done.append(job)

    pool = WorkerPool("test", 1, work)
    for job in range(3):
        pool.add(job)
    assert await pool.close(grace_s=60.0, finish_waiting=True) == 0
    assert done == [0, 1, 2]
    assert len(pool) == 0


async def test_a_fault_that_cannot_be_answered_is_logged_with_the_pool_and_the_job() -> None:
    async def fail(_job: int, *_fault: Exception) -> None:
        raise RuntimeError("unforeseen")

    pool = WorkerPool("test", 1, fail, fail)
    pool.add(7)
    with capture_logs() as logs:
        await let_tasks_run()
    line = {"event": "job failed", "log_level": "error", "exc_info": True}
    assert logs == [line | {"pool": "test", "job": "7"}] * 2
    assert len(pool) == 0
