"""PreBind instructions of the real engine, and their outcomes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from stowage.api.events import (
    AssignedPodGone,
    BindFailed,
    BindSucceeded,
    ClaimDeletionFinished,
    ClaimsWritten,
    Event,
    EvictionFinished,
    NodeSeen,
    PendingPodGone,
    PendingPodSeen,
    VolumesWritten,
)
from stowage.api.instructions import (
    AttemptResult,
    BindByExtender,
    BindClaims,
    BindPod,
    BindVolumes,
    ClaimReference,
    ClaimToBind,
    DeleteClaim,
    EvictPod,
    Instruction,
    PatchPodStatus,
    PodBound,
    PodGroupAttemptResult,
    PodReference,
    PreemptionAttempted,
    PreemptionFinished,
    ReadPod,
    ReleaseClaims,
    ReportProblem,
    SetSelectedNode,
    StopPreBind,
)
from stowage.framework.authoring import SUCCESS, CycleState, PodInfo, Status
from stowage.operator.client.api_error import ApiError
from stowage.operator.extenders.dispatcher import ExtenderDispatcher
from stowage.operator.inbox import Inbox
from stowage.operator.metrics.scheduler_metrics import Metrics
from stowage.operator.tracing.attempt_traces import AttemptTraces, Job
from stowage.operator.writers.worker_pool import WorkerPool
from tests.support.builders import make_node, make_pod
from tests.support.device_builders import allocated, make_claim
from tests.support.dispatchers import make_dispatcher
from tests.support.engines import default_engine
from tests.support.fake_api import SILENCE, FakeApiClient, FakeTime
from tests.unit.operator.tasks import let_tasks_run

POD = PodReference("default", "p", "uid-p")
CLAIM_REFERENCE = ClaimReference("default", "c", "uid-c", "3")
SELECT = SetSelectedNode("default", "data", "uid-data", "7")
CLAIM = make_claim("c", version="3")
ALLOCATION = allocated(CLAIM, "n", "gpu-0").status.allocation
VICTIM = PodReference("default", "victim", "uid-victim")
REFUSED = "403 Forbidden: no right"


class SlowPreBind:
    """A PreBind plugin that ends when the test lets it."""

    name = "SlowPreBind"

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.may_end = asyncio.Event()
        self.was_cancelled = False

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        self.began.set()
        try:
            await self.may_end.wait()
        except asyncio.CancelledError:
            self.was_cancelled = True
            raise
        return SUCCESS


class _Shell:
    """Engine, inbox and dispatcher, driven step by step; the API server accepts every request."""

    def __init__(self) -> None:
        self.plugin, self.inbox, self.client = SlowPreBind(), Inbox(), FakeApiClient(post=[b"{}"])
        self.engine = default_engine(plugins=[self.plugin])
        self.metrics, time = Metrics(lambda: 0.0), FakeTime()
        self.dispatcher = make_dispatcher(self.engine, self.inbox, self.client, time, self.metrics)

    def schedule(self) -> None:
        """Add a node and a pod, and schedule the pod."""
        arrived: list[Event] = [NodeSeen(make_node("n")), PendingPodSeen(make_pod("p"))]
        self.dispatcher.dispatch(self.engine.handle(arrived, 0.0))
        self.dispatcher.dispatch(self.engine.schedule(0.0, 1))

    async def next_events(self) -> list[object]:
        """Wait for the next events and pass them to the engine."""
        await self.inbox.wait(5.0)
        events = self.inbox.drain(10)
        self.dispatcher.dispatch(self.engine.handle(events, 1.0))
        return list(events)


@pytest.fixture
async def shell() -> _Shell:
    return _Shell()


async def test_a_pod_is_bound_only_after_its_pre_bind_plugins_have_ended(shell: _Shell) -> None:
    shell.schedule()
    await shell.plugin.began.wait()
    assert shell.client.sent("POST") == []
    assert shell.dispatcher.num_unfinished_bindings == 1
    shell.plugin.may_end.set()
    await shell.next_events()
    assert BindSucceeded("uid-p", "n") in await shell.next_events()
    (binding,) = [each for each in shell.client.sent("POST") if each.path.endswith("/binding")]
    assert binding.body["target"]["name"] == "n"


async def test_a_pod_that_is_found_to_be_gone_when_it_is_read_is_gone_for_the_engine(
    shell: _Shell,
) -> None:
    shell.client.script("GET", ApiError(404, "NotFound", ""))
    shell.dispatcher.dispatch([ReadPod(POD)])
    assert await shell.next_events() == [AssignedPodGone("default", "p", "uid-p")]


async def test_claims_are_written_only_after_those_of_the_attempt_before_are_released(
    shell: _Shell,
) -> None:
    release = ReleaseClaims(POD, (ClaimReference("default", "old", "uid-old", "3"),))
    shell.client.script("PATCH", SILENCE)
    shell.dispatcher.dispatch(
        [release, BindClaims(POD, "n", (ClaimToBind(CLAIM, ALLOCATION),), number=1)]
    )
    await let_tasks_run()
    (request,) = shell.client.requests
    assert request.path.endswith("/resourceclaims/old/status")
    await shell.dispatcher.close(0.0)


@pytest.mark.parametrize(
    ("instruction", "line", "outcome"),
    [
        (
            BindPod(POD, "n"),
            {"event": "pod not bound", "pod": "default/p", "node": "n"},
            BindFailed("uid-p", "n", REFUSED),
        ),
        (
            BindVolumes(POD, "n", claims=(SELECT,), number=7),
            {"event": "volumes not bound", "pod": "default/p"},
            VolumesWritten("uid-p", 7, error="no right"),
        ),
        (
            BindClaims(POD, "n", (ClaimToBind(CLAIM, ALLOCATION),), number=7),
            {"event": "claims not written", "pod": "default/p"},
            ClaimsWritten("uid-p", 7, error="add finalizer to claim default/c: no right"),
        ),
        (
            DeleteClaim(POD, CLAIM_REFERENCE),
            {"event": "claim not released", "pod": "default/p", "instruction": "DeleteClaim"},
            ClaimDeletionFinished(CLAIM_REFERENCE, REFUSED),
        ),
        (
            EvictPod(VICTIM, POD, "s", 1),
            {"event": "pod not evicted", "pod": "default/victim"},
            EvictionFinished("uid-p", VICTIM, error=REFUSED),
        ),
    ],
    ids=lambda given: type(given).__name__ if isinstance(given, msgspec.Struct) else "",
)
async def test_a_write_that_is_refused_is_logged_and_reported_to_the_engine(
    shell: _Shell, instruction: Instruction, line: dict[str, str], outcome: Event
) -> None:
    for method in ("POST", "PATCH", "DELETE"):
        shell.client.script(method, ApiError(403, "Forbidden", "no right"))
    with capture_logs() as logs:
        shell.dispatcher.dispatch([instruction])
        await shell.inbox.wait(5.0)
    assert list(shell.inbox.drain(10)) == [outcome]
    want = {**line, "error": getattr(outcome, "error", REFUSED), "log_level": "warning"}
    assert logs == [want]


async def test_a_problem_is_logged_once_a_minute_and_counted_each_time(shell: _Shell) -> None:
    odd, other = ReportProblem("Node odd", "no number"), ReportProblem("Node odd", "no quantity")
    with capture_logs() as logs:
        shell.dispatcher.dispatch([odd, odd, other, odd])
    assert [line["text"] for line in logs] == ["no number", "no quantity"]
    registry = shell.metrics.registry
    assert registry.get_sample_value("stowage_problems_total") == 4


async def test_deleting_a_pod_cancels_its_pre_bind_plugins(shell: _Shell) -> None:
    shell.schedule()
    await shell.plugin.began.wait()
    gone = PendingPodGone("default", "p", "uid-p")
    shell.dispatcher.dispatch(shell.engine.handle([gone], 1.0))
    await shell.dispatcher.close(5.0)
    assert shell.plugin.was_cancelled
    assert len(shell.inbox) == 0
    assert shell.client.sent("POST") == []
    shell.engine.validate()


async def test_the_volumes_of_a_pod_that_is_stopped_before_a_worker_is_free_are_not_written(
    shell: _Shell,
) -> None:
    write = BindVolumes(POD, "n", claims=(SELECT,), number=7)
    shell.client.script("PATCH", *[b'{"metadata":{"resourceVersion":"8"}}'] * 2)
    shell.dispatcher.dispatch([write, StopPreBind(POD), write])
    assert shell.dispatcher.num_unfinished_bindings == 1
    await shell.dispatcher.close(5.0)
    assert len(shell.client.sent("PATCH")) == 1
    assert shell.inbox.drain(10) == [VolumesWritten("uid-p", 7, claims={"default/data": "8"})]


@pytest.mark.parametrize(
    ("is_error", "event", "level"),
    [(False, "preempted", "info"), (True, "preemption failed", "warning")],
)
async def test_the_end_of_a_preemption_is_logged(
    is_error: bool, event: str, level: str, shell: _Shell
) -> None:
    with capture_logs() as logs:
        shell.dispatcher.dispatch([PreemptionFinished(POD, "n", is_error, 0.5)])
    assert logs == [{"event": event, "log_level": level, "pod": "default/p", "node": "n"}]


async def test_the_beginning_of_a_preemption_is_logged_if_it_has_victims(shell: _Shell) -> None:
    with capture_logs() as logs:
        shell.dispatcher.dispatch([PreemptionAttempted(POD), PreemptionAttempted(POD, "n", 3)])
    line = {"event": "preempting", "log_level": "info", "pod": "default/p"}
    assert logs == [line | {"node": "n", "victims": 3}]


async def test_the_attempt_of_a_pod_group_is_logged_and_counted(shell: _Shell) -> None:
    attempt = PodGroupAttemptResult(
        namespace="default",
        name="g",
        scheduler_name="stowage",
        result="unschedulable",
        duration_s=0.5,
        algorithm_duration_s=0.25,
        num_pods=3,
        num_fitting=2,
        message="pod group is unschedulable",
    )
    with capture_logs() as logs:
        shell.dispatcher.dispatch([attempt])
    assert logs == [
        {
            "event": "pod group attempted",
            "group": "default/g",
            "result": "unschedulable",
            "pods": 3,
            "fitting": 2,
            "message": "pod group is unschedulable",
            "log_level": "info",
        }
    ]
    labels = {"profile": "stowage", "result": "unschedulable"}
    name = "scheduler_podgroup_schedule_attempts_total"
    assert shell.metrics.registry.get_sample_value(name, labels) == 1


@pytest.mark.parametrize(
    ("answer", "status"), [({}, "Success"), (ApiError(403, "Forbidden", ""), "Error")]
)
async def test_the_duration_of_a_binding_is_measured_by_its_outcome(
    answer: Any, status: str, shell: _Shell
) -> None:
    shell.client.script("POST", answer)
    shell.dispatcher.dispatch([BindPod(POD, "n")])
    await shell.inbox.wait(5.0)
    name = "scheduler_framework_extension_point_duration_seconds_count"
    labels = {"extension_point": "Bind", "status": status, "profile": ""}
    assert shell.metrics.registry.get_sample_value(name, labels) == 1


def test_the_pools_of_workers_are_named_in_metrics() -> None:
    dispatcher = make_dispatcher(default_engine(), Inbox(), FakeApiClient(), FakeTime())
    assert [pool.name for pool in dispatcher.pools] == [
        "bindings",
        "pre-binds",
        "volume writes",
        "claim writes",
        "claim releases",
        "reads",
        "evictions",
        "pod-status",
        "pod-group-status",
        "events",
    ]


async def test_every_pool_has_metrics_but_those_of_extenders_if_there_are_none(
    shell: _Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[WorkerPool[object]] = []

    async def close(pool: WorkerPool[object], _grace_s: float, **_options: bool) -> int:
        closed.append(pool)
        return 0

    monkeypatch.setattr(WorkerPool, "close", close)
    await shell.dispatcher.close(0.0)
    of_extenders = {"consultations", "extender bindings", "victim reviews"}
    measured = [pool.name for pool in shell.dispatcher.pools]
    assert sorted([*measured, *of_extenders]) == sorted(pool.name for pool in closed)


TAKING = frozenset(("bindings", "extender bindings", "volume writes", "claim writes"))
"""Pools whose writes take something that the next leader must not give away."""


async def test_only_bindings_claims_volumes_evictions_and_events_may_end_after_the_signal_to_stop(
    shell: _Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_grace: set[str] = set()

    async def close(pool: WorkerPool[object], grace_s: float, **_options: bool) -> int:
        if grace_s > 0:
            with_grace.add(pool.name)
        return 0

    monkeypatch.setattr(WorkerPool, "close", close)
    await shell.dispatcher.close(2.0)
    assert with_grace == {*TAKING, "claim releases", "evictions", "events"}


async def test_what_takes_something_and_was_cut_off_has_no_known_outcome(
    shell: _Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_off: list[str] = []

    async def close(pool: WorkerPool[object], _grace_s: float, **_options: bool) -> int:
        cut_off.append(pool.name)
        return 1

    monkeypatch.setattr(WorkerPool, "close", close)
    await shell.dispatcher.close(2.0)
    assert set(cut_off) > TAKING
    assert shell.dispatcher.num_unknown_outcomes == len(TAKING)


async def test_a_binding_without_an_answer_has_no_known_outcome_at_the_end(shell: _Shell) -> None:
    shell.client.script("POST", SILENCE)
    shell.dispatcher.dispatch([BindPod(POD, "n")])
    await let_tasks_run()
    await shell.dispatcher.close(0.0)
    assert shell.dispatcher.num_unknown_outcomes == 1


async def test_a_binding_that_ends_within_the_grace_has_a_known_outcome(shell: _Shell) -> None:
    shell.dispatcher.dispatch([BindPod(POD, "n")])
    await shell.dispatcher.close(5.0)
    assert len(shell.client.sent("POST")) == 1
    assert shell.dispatcher.num_unknown_outcomes == 0


async def test_a_pod_that_an_extender_binds_has_no_status_written(
    shell: _Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It could arrive after the binding and mark a bound pod unschedulable."""
    bound: list[BindByExtender] = []
    monkeypatch.setattr(ExtenderDispatcher, "bind", lambda _self, given: bound.append(given))
    bind = BindByExtender(POD, "n", 0)
    shell.dispatcher.dispatch([PatchPodStatus(POD, "Unschedulable", "no node"), bind])
    await let_tasks_run()
    assert bound == [bind]
    assert shell.client.requests == []


class _Traces(AttemptTraces):
    """Notes which traces end."""

    def __init__(self) -> None:
        self.ended: list[object] = []

    def within(self, work: Callable[[Job], Awaitable[None]]) -> Callable[[Job], Awaitable[None]]:
        return work

    def attempt_ended(self, attempt: AttemptResult) -> None:
        self.ended.append(attempt)

    def pod_bound(self, bound: PodBound) -> None:
        self.ended.append(bound)


async def test_the_traces_hear_of_attempts_and_of_bound_pods() -> None:
    traces = _Traces()
    dispatcher = make_dispatcher(
        default_engine(), Inbox(), FakeApiClient(), FakeTime(), traces=traces
    )
    heard: list[Instruction] = [
        AttemptResult(POD, "scheduled", "s", 1),
        PodBound(POD, "n", "s", 1, 0.5),
    ]
    dispatcher.dispatch(heard)
    assert traces.ended == heard
