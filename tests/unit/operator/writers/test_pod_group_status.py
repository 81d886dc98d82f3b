"""The PodGroupScheduled condition: one request per group at a time, repeated until answered."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from stowage.api.instructions import PatchPodGroupStatus, PodGroupReference
from stowage.operator.client.api_error import ApiError
from stowage.operator.writers.pod_group_status import PodGroupStatusWriter
from tests.support.fake_api import FakeApiClient, FakeTime
from tests.unit.operator.tasks import let_tasks_run

GROUP = PodGroupReference("default", "g", "u-g")
WAITING = PatchPodGroupStatus(GROUP, "False", "Unschedulable", "pod group is unschedulable")
SCHEDULED = PatchPodGroupStatus(GROUP, "True", "Scheduled")
PATH = "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups/g/status"


class _Run:
    def __init__(self, *answers: Any, may_write: bool = True) -> None:
        self.client = FakeApiClient(patch=list(answers) or [{}])
        self.time = FakeTime()
        self.writer = PodGroupStatusWriter(self.client, lambda: may_write, self.time.clock)

    async def write(self, *instructions: PatchPodGroupStatus) -> list[dict[str, Any]]:
        """The conditions that were sent."""
        for instruction in instructions:
            self.writer.patch(instruction)
        await let_tasks_run()
        assert len(self.writer.pool) == 0
        return [request.body["status"]["conditions"][0] for request in self.client.requests]


async def test_the_condition_is_merged_into_the_status_of_this_group_alone() -> None:
    run = _Run()
    (condition,) = await run.write(replace(WAITING, observed_generation=3))
    assert condition == {
        "type": "PodGroupScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "pod group is unschedulable",
        "observedGeneration": 3,
        "lastTransitionTime": "t1000",
    }
    (request,) = run.client.requests
    assert (request.method, request.path) == ("PATCH", PATH)
    assert request.body["metadata"] == {"uid": "u-g"}


async def test_a_new_reason_keeps_the_time_of_the_transition() -> None:
    (condition,) = await _Run().write(replace(WAITING, is_transition=False))
    assert "lastTransitionTime" not in condition
    assert "observedGeneration" not in condition


async def test_of_waiting_conditions_the_latest_is_written_with_the_transition() -> None:
    first = _Run()
    (condition,) = await first.write(WAITING, replace(SCHEDULED, is_transition=False))
    assert (condition["status"], condition["lastTransitionTime"]) == ("True", "t1000")


async def test_a_condition_that_arrives_during_a_request_is_written_after_it() -> None:
    run = _Run()
    run.writer.patch(WAITING)
    await let_tasks_run()
    conditions = await run.write(SCHEDULED)
    assert conditions[-1]["status"] == "True"
    other = replace(WAITING, group=PodGroupReference("default", "h", "u-h"))
    assert len(await run.write(other)) == len(conditions) + 1


@pytest.mark.parametrize(
    "fault", [TimeoutError(), ApiError(503), ApiError(409, "Conflict", "modified since")]
)
async def test_a_request_is_repeated_after_a_passing_fault(fault: Exception) -> None:
    run = _Run(fault, fault, {})
    with capture_logs() as lines:
        assert len(await run.write(WAITING)) == 3
    level = "debug" if isinstance(fault, TimeoutError) else "info"
    line = {"event": "pod group status not written yet", "group": "default/g"}
    error = str(fault) or "no answer in time"
    assert lines == [{**line, "error": error, "log_level": level}] * 2
    assert run.time.slept == [0.2, 0.4]


@pytest.mark.parametrize(
    ("status", "message", "is_logged"),
    [(403, "forbidden", True), (404, "", False), (409, "Precondition failed: UID", False)],
)
async def test_a_refusal_is_logged_unless_the_group_is_gone(
    status: int, message: str, is_logged: bool
) -> None:
    with capture_logs() as lines:
        assert len(await _Run(ApiError(status, "", message)).write(WAITING)) == 1
    expected = [("pod group status not written", "default/g")] if is_logged else []
    assert [(line["event"], line["group"]) for line in lines] == expected


async def test_nothing_is_written_without_the_lease() -> None:
    assert await _Run(may_write=False).write(WAITING) == []
