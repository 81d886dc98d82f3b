"""Worker pools are measured as client-go's work queues are."""

from __future__ import annotations

import asyncio

import pytest

from stowage.operator import clock
from stowage.operator.metrics.work_queue_metrics import WorkQueueMetrics
from stowage.operator.writers.worker_pool import WorkerPool
from tests.unit.operator.tasks import let_tasks_run


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time of the pools, in a list of one."""
    now = [100.0]
    monkeypatch.setattr(clock, "timer", lambda: now[0])
    return now


def _values(pool: WorkerPool[int]) -> dict[str, float]:
    return {
        sample.name.removeprefix("workqueue_"): sample.value
        for family in WorkQueueMetrics([pool]).collect()
        for sample in family.samples
        if sample.labels == {"name": "test"}
    }


async def test_waiting_and_running_jobs_are_measured(time: list[float]) -> None:
    is_open = asyncio.Event()

    async def work(_job: int) -> None:
        await is_open.wait()

    pool = WorkerPool("test", 2, work)
    for job in range(3):
        pool.add(job)
    time[0] += 1.0
    await let_tasks_run()
    time[0] += 4.0
    values = _values(pool)
    assert (values["depth"], values["adds_total"]) == (1, 3)
    assert values["unfinished_work_seconds"] == 8.0
    assert values["longest_running_processor_seconds"] == 4.0
    assert (values["queue_duration_seconds_count"], values["queue_duration_seconds_sum"]) == (
        2,
        2.0,
    )
    is_open.set()
    await let_tasks_run()
    values = _values(pool)
    assert (values["depth"], values["unfinished_work_seconds"]) == (0, 0)
    assert (values["work_duration_seconds_count"], values["work_duration_seconds_sum"]) == (3, 8.0)
    assert values["queue_duration_seconds_sum"] == 2.0 + 5.0


async def test_a_job_that_fails_is_measured_too(time: list[float]) -> None:
    async def fail(_job: int) -> None:
        time[0] += 3.0
        raise RuntimeError("unforeseen")

    pool = WorkerPool("test", 1, fail)
    pool.add(1)
    await let_tasks_run()
    values = _values(pool)
    assert (values["work_duration_seconds_count"], values["work_duration_seconds_sum"]) == (1, 3.0)
    assert values["longest_running_processor_seconds"] == 0
