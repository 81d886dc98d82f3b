from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from stowage.api.events import VolumesWritten
from stowage.api.instructions import BindPod
from stowage.api.status import SKIP, SUCCESS, Code, Status, error, unschedulable
from stowage.framework import CycleState, Framework, PluginFailed, PluginTraits
from stowage.framework.extension_points import PreBindProgress, ReservePlan
from stowage.framework.runtime.binding_run import MAX_PERMIT_WAIT_S, StagedPreBind
from stowage.state import ClusterCache, PodInfo, make_pod_info
from tests.support.builders import make_pod
from tests.support.plugins.small_plugins import NO_TRAITS, framework_of

WAIT = Status(Code.WAIT)
STATE = CycleState()


@dataclass
class Recorder:
    """Implements Reserve to PostBind and records each call."""

    name: str
    log: list[str] = field(default_factory=list)
    status: Status = SUCCESS
    timeout_s: float = 0.0
    binds: bool = True
    breaks: bool = False
    traits: PluginTraits = NO_TRAITS

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        self._note("reserve")
        return self.status

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        self._note("unreserve")

    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, float]:
        self._note("permit")
        return self.status, self.timeout_s

    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        self._note("pre-flight")
        return self.status

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        self._note("pre-bind")
        return self.status

    def bind(self, state: CycleState, pod: PodInfo, node_name: str) -> BindPod | None:
        return BindPod(pod.reference, f"{node_name} by {self.name}") if self.binds else None

    def post_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        self._note("post-bind")

    def _note(self, what: str) -> None:
        self.log.append(f"{what} {self.name}")
        if self.breaks:
            raise RuntimeError("record failed")


@pytest.fixture
def pod() -> PodInfo:
    return make_pod_info(make_pod("p"), ClusterCache().classes)


def test_a_failed_reserve_unreserves_all_plugins_in_reverse_order(pod: PodInfo) -> None:
    log: list[str] = []
    plugins = [
        Recorder("A", log),
        Recorder("B", log, unschedulable("taken")),
        Recorder("C", log),
    ]
    status = framework_of(*plugins).run_reserve(STATE, pod, "n0").status
    assert (status.plugin, status.message) == ("B", "taken")
    assert log == ["reserve A", "reserve B", "unreserve C", "unreserve B", "unreserve A"]


def test_a_plugin_that_raises_in_unreserve_does_not_stop_the_others(pod: PodInfo) -> None:
    log: list[str] = []
    framework = framework_of(Recorder("A", log), Recorder("B", log, breaks=True))
    with pytest.raises(PluginFailed, match='running Unreserve plugin "B": record failed'):
        framework.run_unreserve(STATE, pod, "n0")
    assert log == ["unreserve B", "unreserve A"]


def test_permit_waits_for_every_plugin_within_the_maximum(pod: PodInfo) -> None:
    framework = framework_of(
        Recorder("A", status=WAIT, timeout_s=3),
        Recorder("B"),
        Recorder("C", status=WAIT, timeout_s=10**6),
    )
    outcome = framework.run_permit(STATE, pod, "n0")
    assert outcome.status.code is Code.WAIT
    assert outcome.timeouts == {"A": 3, "C": MAX_PERMIT_WAIT_S}


def test_a_rejection_by_permit_wins_over_waiting(pod: PodInfo) -> None:
    framework = framework_of(
        Recorder("A", status=WAIT, timeout_s=3), Recorder("B", status=unschedulable("no"))
    )
    outcome = framework.run_permit(STATE, pod, "n0")
    assert (outcome.status.plugin, outcome.status.message) == ("B", "no")
    assert outcome.timeouts == {}


@dataclass
class Witness:
    """Notes what it is given from Reserve to PostBind."""

    name: str = "Witness"
    given: dict[str, tuple[CycleState, PodInfo, str]] = field(default_factory=dict)
    traits: PluginTraits = NO_TRAITS

    def reserve(self, *given: Any) -> Status:
        self.given["reserve"] = given
        return SUCCESS

    def unreserve(self, *given: Any) -> None:
        self.given["unreserve"] = given

    def permit(self, *given: Any) -> tuple[Status, float]:
        self.given["permit"] = given
        return SUCCESS, 0.0

    def pre_bind_pre_flight(self, *given: Any) -> Status:
        self.given["pre-flight"] = given
        return SUCCESS

    async def pre_bind(self, *given: Any) -> Status:
        self.given["pre-bind"] = given
        return SUCCESS

    def bind(self, state: CycleState, pod: PodInfo, node_name: str) -> BindPod:
        self.given["bind"] = state, pod, node_name
        return BindPod(pod.reference, node_name)

    def post_bind(self, *given: Any) -> None:
        self.given["post-bind"] = given


def test_each_point_is_given_the_state_of_the_cycle_the_pod_and_its_node(pod: PodInfo) -> None:
    witness = Witness()
    framework = framework_of(witness)
    framework.run_reserve(STATE, pod, "n0")
    framework.run_unreserve(STATE, pod, "n0")
    framework.run_permit(STATE, pod, "n0")
    plan = framework.plan_pre_bind(STATE, pod, "n0")
    asyncio.run(framework.run_pre_bind(STATE, pod, "n0", plan.plugins))
    framework.run_bind(STATE, pod, "n0")
    framework.run_post_bind(STATE, pod, "n0")
    points = ("reserve", "unreserve", "permit", "pre-flight", "pre-bind", "bind", "post-bind")
    assert witness.given == dict.fromkeys(points, (STATE, pod, "n0"))


def _pre_bind(framework: Framework, pod: PodInfo) -> Status:
    return asyncio.run(framework.run_pre_bind(STATE, pod, "n0", ("A",)))


#: What runs each point, and how kube-scheduler words its failure.
_POINTS: dict[str, Callable[[Framework, PodInfo], Status]] = {
    'running Permit plugin "A"': lambda run, pod: run.run_permit(STATE, pod, "n0").status,
    'running PreBindPreFlight "A"': lambda run, pod: run.plan_pre_bind(STATE, pod, "n0").status,
    'running PreBind plugin "A"': _pre_bind,
}


@pytest.mark.parametrize("doing", _POINTS)
@pytest.mark.parametrize(
    ("plugin", "cause"),
    [(Recorder("A", breaks=True), "record failed"), (Recorder("A", status=error("lost")), "lost")],
    ids=["raises", "answers an error"],
)
def test_a_failure_names_the_point_and_the_plugin(
    pod: PodInfo, doing: str, plugin: Recorder, cause: str
) -> None:
    status = _POINTS[doing](framework_of(plugin), pod)
    assert status == Status(Code.ERROR, (f"{doing}: {cause}",), "A")


def test_a_bind_plugin_that_raises_is_named(pod: PodInfo) -> None:
    class Torn(Recorder):
        def bind(self, state: CycleState, pod: PodInfo, node_name: str) -> BindPod | None:
            raise RuntimeError("no ink")

    with pytest.raises(PluginFailed) as caught:
        framework_of(Torn("A")).run_bind(STATE, pod, "n0")
    assert caught.value.status == Status(Code.ERROR, ('running Bind plugin "A": no ink',), "A")


def test_the_plan_of_a_reserve_plugin_is_kept_by_its_name(pod: PodInfo) -> None:
    plan = ReservePlan(annotations={"a": "b"})

    class Plans(Recorder):
        def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Any:
            return plan

    outcome = framework_of(Recorder("A"), Plans("B")).run_reserve(STATE, pod, "n0")
    assert (outcome.status, outcome.plans) == (SUCCESS, {"B": plan})


def test_error_messages_equal_those_of_kube_scheduler(pod: PodInfo) -> None:
    broken = framework_of(Recorder("A", breaks=True))
    failing = framework_of(Recorder("A", status=error("lost")))
    assert broken.run_reserve(STATE, pod, "n0").status.reasons == (
        'running Reserve plugin "A": record failed',
        'running Unreserve plugin "A": record failed',
    )
    assert failing.run_permit(STATE, pod, "n0").status.message == 'running Permit plugin "A": lost'
    plan = failing.plan_pre_bind(STATE, pod, "n0")
    assert plan.status.message == 'running PreBindPreFlight "A": lost'


def test_pre_bind_runs_only_plugins_whose_pre_flight_is_not_skip(pod: PodInfo) -> None:
    log: list[str] = []
    framework = framework_of(Recorder("A", log, SKIP), Recorder("B", log))
    plan = framework.plan_pre_bind(STATE, pod, "n0")
    assert plan.plugins == ("B",)
    log.clear()
    status = asyncio.run(framework.run_pre_bind(STATE, pod, "n0", plan.plugins))
    assert status.is_success
    assert log == ["pre-bind B"]


def test_pre_bind_stops_at_the_first_plugin_that_does_not_succeed(pod: PodInfo) -> None:
    log: list[str] = []
    framework = framework_of(Recorder("A", log, unschedulable("no volume")), Recorder("B", log))
    status = asyncio.run(framework.run_pre_bind(STATE, pod, "n0", ("A", "B")))
    assert (status.plugin, status.message, log) == ("A", "no volume", ["pre-bind A"])


def test_the_first_plugin_that_takes_the_pod_binds_it(pod: PodInfo) -> None:
    framework = framework_of(Recorder("A", binds=False), Recorder("B"))
    assert framework.run_bind(STATE, pod, "n0") == ("B", BindPod(pod.reference, "n0 by B"))


def test_a_pod_that_no_plugin_binds_is_an_error(pod: PodInfo) -> None:
    framework = framework_of(Recorder("A", binds=False))
    with pytest.raises(PluginFailed, match="no bind plugin takes the pod"):
        framework.run_bind(STATE, pod, "n0")


def test_every_post_bind_plugin_runs_even_if_one_raises(pod: PodInfo) -> None:
    log: list[str] = []
    framework = framework_of(Recorder("A", log, breaks=True), Recorder("B", log))
    with pytest.raises(PluginFailed, match='running PostBind plugin "A": record failed'):
        framework.run_post_bind(STATE, pod, "n0")
    assert log == ["post-bind A", "post-bind B"]


class _Staged:
    """Each step of its PreBind raises, or is what the test says."""

    name = "Staged"
    pre_bind_timeout_s = 30.0

    def __init__(self, progress: PreBindProgress | None = None) -> None:
        self._progress = progress

    def pre_bind_writes(self, *_given: object) -> Any:
        raise ValueError("no writes")

    def pre_bind_written(self, *_given: object) -> None:
        if self._progress is None:
            raise ValueError("not written")

    def pre_bind_progress(self, *_given: object) -> PreBindProgress:
        if self._progress is None:
            raise ValueError("no progress")
        return self._progress

    def pre_bind_timed_out(self, *_given: object) -> str:
        if self._progress is None:
            raise ValueError("no text")
        return "too late"


def _staged(pod: PodInfo, progress: PreBindProgress | None = None) -> StagedPreBind:
    return StagedPreBind(cast("Any", _Staged(progress)), STATE, pod, "n0")


PRE_BIND = 'running PreBind plugin "Staged": '


def test_a_staged_pre_bind_that_raises_fails_with_the_name_of_its_plugin(
    pod: PodInfo,
) -> None:
    staged, outcome = _staged(pod), VolumesWritten("uid-p", 1, error="no right")
    with pytest.raises(PluginFailed) as writes:
        staged.writes()
    with pytest.raises(PluginFailed) as written:
        staged.written(outcome)
    with pytest.raises(PluginFailed) as failed:
        _staged(pod, PreBindProgress(SUCCESS)).written(outcome)
    snapshot = ClusterCache().snapshot()
    found = [
        writes.value.status,
        written.value.status,
        failed.value.status,
        staged.progress(snapshot).status,
        staged.timed_out(snapshot),
        _staged(pod, PreBindProgress(SUCCESS)).timed_out(snapshot),
    ]
    texts = ("no writes", "not written", "no right", "no progress", "no text", "too late")
    assert [each.message for each in found] == [PRE_BIND + text for text in texts]
    assert {(each.code, each.plugin) for each in found} == {(Code.ERROR, "Staged")}


def test_a_staged_pre_bind_that_rejects_its_pod_names_its_plugin(pod: PodInfo) -> None:
    rejected = _staged(pod, PreBindProgress(unschedulable("in vain")))
    status = rejected.progress(ClusterCache().snapshot()).status
    assert (status.code, status.plugin, status.message) == (
        Code.UNSCHEDULABLE,
        "Staged",
        "in vain",
    )
