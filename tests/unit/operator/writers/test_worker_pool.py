"""Worker pools bound the number of concurrent jobs."""

from __future__ import annotations

import asyncio

from stowage.operator.writers.worker_pool import WorkerPool


class _Gate:
    """Work that ends when told."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.open = asyncio.Event()

    async def work(self, job: int) -> None:
        self.begun.append(job)
        await self.open.wait()


async def _settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_no_more_than_the_width_is_done_at_once_and_order_is_kept() -> None:
    gate = _Gate()
    lane = WorkerPool("test", 2, gate.work)
    for job in range(5):
        lane.add(job)
    await _settle()
    assert gate.begun == [0, 1]
    assert len(lane) == 5
    gate.open.set()
    await _settle()
    assert gate.begun == [0, 1, 2, 3, 4]
    assert len(lane) == 0


async def test_a_job_added_the_moment_the_last_worker_ends_is_done() -> None:
    done: list[int] = []

    async def work(job: int) -> None:
        done.append(job)
        if job < 3:
            asyncio.get_running_loop().call_soon(lane.add, job + 1)

    lane = WorkerPool("test", 1, work)
    lane.add(0)
    await _settle()
    assert done == [0, 1, 2, 3]


async def test_a_job_that_fails_does_not_stop_the_pool() -> None:
    done: list[int] = []

    async def work(job: int) -> None:
        if job == 0:
            raise RuntimeError("unforeseen")
        done.append(job)

    lane = WorkerPool("test", 1, work)
    lane.add(0)
    lane.add(1)
    await _settle()
    assert done == [1]


async def test_closing_drops_what_has_not_begun_and_cancels_what_does_not_end() -> None:
    gate = _Gate()
    lane = WorkerPool("test", 1, gate.work)
    lane.add(0)
    lane.add(1)
    await _settle()
    await lane.close(grace_s=0.0)
    lane.add(2)
    await _settle()
    assert gate.begun == [0]
    assert len(lane) == 0
