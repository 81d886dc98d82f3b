"""The engine measures durations for metrics without changing a decision."""

from __future__ import annotations

from itertools import count

from stowage.api.config.extenders import Extenders
from stowage.api.config.loading import KubeSchedulerProfile
from stowage.api.config.types import Extender
from stowage.api.events import (
    AssignedPodGone,
    AssignedPodSeen,
    BindFailed,
    BindSucceeded,
    DeviceObjectGone,
    DeviceObjectSeen,
    ExtendersAnswered,
    NodeGone,
    NodeSeen,
    PendingPodGone,
    PendingPodSeen,
    PodGroupSeen,
    StorageGone,
    StorageSeen,
    VolumesWritten,
)
from stowage.api.instructions import (
    AttemptResult,
    BindPod,
    BindVolumes,
    ConsultExtenders,
    PodGroupAttemptResult,
)
from stowage.engine import Engine, Journal, make_engine, replay
from stowage.engine.journal import ScheduleCall
from stowage.framework import Framework, Timings, build_profile
from stowage.plugins import in_tree_registry
from tests.stories.gang_driver import make_group, make_member
from tests.support import device_builders
from tests.support.builders import make_node, make_pod
from tests.support.engines import default_engine, of_type
from tests.support.volume_builders import claim_volume, make_claim, make_class, make_volume


class _RecordedDurations:
    def __init__(self) -> None:
        self.points: list[tuple[str, str, str]] = []
        self.plugins: set[tuple[str, str]] = set()
        self.plugin_statuses: list[tuple[str, str, str]] = []
        self.events: list[str] = []
        self.hints: list[tuple[str, str, str]] = []

    def observe_extension_point(
        self, point: str, status: str, profile: str, duration_s: float
    ) -> None:
        assert duration_s > 0
        self.points.append((point, status, profile))

    def observe_plugin(self, plugin: str, point: str, status: str, duration_s: float) -> None:
        assert duration_s > 0
        self.plugins.add((plugin, point))
        self.plugin_statuses.append((plugin, point, status))

    def of_point(self, point: str) -> list[tuple[str, str]]:
        """The plugins and the point itself, as they ended there, with their statuses."""
        plugins = [(name, status) for name, at, status in self.plugin_statuses if at == point]
        return plugins + [(at, status) for at, status, _ in self.points if at == point]

    def observe_event(self, event: str, duration_s: float) -> None:
        assert duration_s > 0
        self.events.append(event)

    def observe_hint(self, plugin: str, event: str, hint: str, duration_s: float) -> None:
        assert duration_s > 0
        self.hints.append((plugin, event, hint))

    def observe_permit_wait(self, result: str, duration_s: float) -> None:
        raise AssertionError("no pod waits at Permit")


def _schedule(engine: Engine, num_pods: int) -> list[str]:
    nodes = [NodeSeen(make_node(f"n{number}", cpu=str(4 + number))) for number in range(5)]
    pods = [PendingPodSeen(make_pod(f"p{number}", cpu="1")) for number in range(num_pods)]
    engine.handle([*nodes, *pods], 0.0)
    bindings = of_type(BindPod, engine.schedule(0.0, num_pods))
    engine.handle([BindSucceeded(each.pod.uid, each.node_name) for each in bindings], 1.0)
    return [each.node_name for each in bindings]


def _timed_engine(observed: _RecordedDurations, one_in: int) -> Engine:
    engine, seconds = default_engine(), count()
    engine.take_durations(Timings(lambda: float(next(seconds)), observed, one_in))
    return engine


def test_a_sampled_pod_is_timed_at_every_extension_point() -> None:
    observed = _RecordedDurations()
    _schedule(_timed_engine(observed, one_in=1), num_pods=1)
    points = ("PreFilter", "Filter", "PreScore", "Score", "Reserve", "Permit", "PostBind")
    expected = [(point, "Success", "default-scheduler") for point in points]
    expected[-1:-1] = [
        ("PreBindPreFlight", "Skip", "default-scheduler"),
        ("PreBind", "Success", "default-scheduler"),
    ]
    assert observed.points == expected
    assert {("NodeResourcesFit", "Filter"), ("NodeResourcesFit", "Score")} <= observed.plugins
    assert ("InterPodAffinity", "PreScore") in observed.plugins
    assert {point for _, point in observed.plugins} == {
        *(point for point in points if point != "PostBind"),
        *("ScoreExtensionNormalize", "PreBindPreFlight", "Bind"),
    }


def test_plugins_are_timed_after_score_too() -> None:
    observed = _RecordedDurations()
    _schedule(_timed_engine(observed, one_in=1), num_pods=1)
    expected = {
        ("TaintToleration", "ScoreExtensionNormalize"),
        ("VolumeBinding", "Reserve"),
        ("GangScheduling", "Permit"),
        ("VolumeBinding", "PreBindPreFlight"),
        ("DefaultBinder", "Bind"),
    }
    assert expected <= observed.plugins
    assert ("VolumeBinding", "PreBindPreFlight", "Skip") in observed.plugin_statuses


def _waiting_for_its_volume(observed: _RecordedDurations) -> Engine:
    """An engine with a pod whose claim waits for its provisioner."""
    engine = _timed_engine(observed, one_in=1)
    engine.handle([NodeSeen(make_node("n"))], 0.0)
    engine.handle([StorageSeen(make_class()), StorageSeen(make_claim("c", version="1"))], 0.0)
    engine.handle([PendingPodSeen(make_pod("p", volumes=(claim_volume("c"),)))], 0.0)
    assert of_type(BindVolumes, engine.schedule(0.0, 1))
    engine.handle([VolumesWritten("uid-p", 1, {}, {"default/c": "2"})], 1.0)
    return engine


def test_pre_bind_is_timed_until_the_volumes_are_bound() -> None:
    observed = _RecordedDurations()
    engine = _waiting_for_its_volume(observed)
    assert observed.of_point("PreBind") == []
    made = make_volume("made", given_to="c", version="3")
    bound = make_claim("c", volume="made", selected_node="n", version="4")
    (bind,) = of_type(BindPod, engine.handle([StorageSeen(made), StorageSeen(bound)], 2.0))
    assert observed.of_point("PreBind") == [("VolumeBinding", "Success"), ("PreBind", "Success")]
    engine.handle([BindFailed(bind.pod.uid, bind.node_name, "refused")], 3.0)
    assert observed.of_point("Bind") == [("DefaultBinder", "Error")]
    assert observed.of_point("Unreserve")[-1] == ("Unreserve", "Success")
    assert ("VolumeBinding", "Success") in observed.of_point("Unreserve")


def test_a_pre_bind_that_fails_is_timed_with_its_status() -> None:
    observed = _RecordedDurations()
    engine = _waiting_for_its_volume(observed)
    engine.handle([StorageSeen(make_claim("c", version="3"))], 2.0)
    assert observed.of_point("PreBind") == [("VolumeBinding", "Error"), ("PreBind", "Error")]


def test_one_pod_in_ten_is_timed() -> None:
    observed = _RecordedDurations()
    _schedule(_timed_engine(observed, one_in=10), num_pods=20)
    assert [point for point, _, _ in observed.points].count("Filter") == 2


def test_timing_changes_no_decision() -> None:
    timed = _schedule(_timed_engine(_RecordedDurations(), one_in=3), num_pods=20)
    assert timed == _schedule(default_engine(), num_pods=20)


def test_a_pod_that_fits_nowhere_is_timed_up_to_post_filter() -> None:
    observed = _RecordedDurations()
    engine = _timed_engine(observed, one_in=1)
    engine.handle([NodeSeen(make_node("n", cpu="1"))], 0.0)
    engine.handle([PendingPodSeen(make_pod("p", cpu="8"))], 0.0)
    engine.schedule(0.0, 1)
    assert [point for point, _, _ in observed.points] == ["PreFilter", "Filter", "PostFilter"]
    assert observed.of_point("PostFilter") == [
        ("DynamicResources", "Unschedulable"),
        ("DefaultPreemption", "Unschedulable"),
        ("PostFilter", "Unschedulable"),
    ]


def test_every_watch_event_is_timed_under_its_name_in_kube_scheduler() -> None:
    observed = _RecordedDurations()
    engine = _timed_engine(observed, one_in=10)
    engine.handle([NodeSeen(make_node("n")), PendingPodSeen(make_pod("p"))], 0.0)
    changed = make_node("n", cpu="8", labels={"disk": "ssd"})
    engine.handle([NodeSeen(changed), PendingPodSeen(make_pod("p", labels={"a": "b"}))], 1.0)
    engine.handle([PendingPodGone("default", "p", "uid-p"), NodeGone("n")], 2.0)
    running = make_pod("r", node="n")
    relabelled = make_pod("r", node="n", labels={"a": "b"})
    updates = [AssignedPodSeen(running), AssignedPodSeen(relabelled)]
    engine.handle([*updates, AssignedPodGone("default", "r", "uid-r")], 3.0)
    assert observed.events == [
        "NodeAdd",
        "UnschedulablePodAdd",
        "NodeUpdateNodeAllocatable",
        "NodeUpdateNodeLabel",
        "UnschedulablePodUpdate",
        "UnschedulablePodUpdatePodLabel",
        "UnschedulablePodDelete",
        "NodeDelete",
        "AssignedPodAdd",
        "AssignedPodUpdate",
        "AssignedPodUpdatePodLabel",
        "AssignedPodDelete",
    ]


def test_events_of_volumes_and_devices_are_timed_if_a_plugin_registered_them() -> None:
    observed = _RecordedDurations()
    engine = _timed_engine(observed, one_in=10)
    engine.handle([StorageSeen(make_claim("c", version="1"))], 0.0)
    engine.handle([StorageSeen(make_claim("c", version="2", volume="v"))], 1.0)
    engine.handle([StorageGone("PersistentVolumeClaim", "default", "c")], 2.0)
    engine.handle([DeviceObjectSeen(device_builders.make_claim("devices"))], 3.0)
    engine.handle([DeviceObjectGone("ResourceClaim", "default", "devices")], 4.0)
    assert observed.events == [
        "PersistentVolumeClaimAdd",
        "PersistentVolumeClaimUpdate",
        "resource.k8s.io/ResourceClaimAdd",
    ]


def test_a_hint_is_timed_once_per_class() -> None:
    observed = _RecordedDurations()
    engine = _timed_engine(observed, one_in=10)
    engine.handle([NodeSeen(make_node("n", cpu="1"))], 0.0)
    engine.handle([PendingPodSeen(make_pod(f"p{number}", cpu="8")) for number in range(3)], 0.0)
    engine.schedule(0.0, 3)
    observed.hints.clear()
    engine.handle([NodeSeen(make_node("small", cpu="2"))], 1.0)
    engine.handle([NodeSeen(make_node("large", cpu="16"))], 2.0)
    expected = [("NodeResourcesFit", "NodeAdd", answer) for answer in ("QueueSkip", "Queue")]
    assert observed.hints == expected


def test_every_pod_and_node_can_be_listed() -> None:
    engine = default_engine()
    _schedule(engine, num_pods=3)
    engine.handle([PendingPodSeen(make_pod("waiting", cpu="100"))], 1.0)
    engine.schedule(1.0, 1)
    assert sorted(pod.name for pod in engine.pods()) == ["p0", "p1", "p2", "waiting"]
    assert sorted(engine.node_names()) == ["n0", "n1", "n2", "n3", "n4"]
    engine.handle([NodeGone("n4")], 1.0)
    assert sorted(engine.node_names()) == ["n0", "n1", "n2", "n3"]
    assert engine.unschedulable_counts() == {("default-scheduler", "NodeResourcesFit"): 1}


def test_timed_cycles_use_the_refusal_cache_and_replay() -> None:
    journal = Journal()
    engine = default_engine(journal=journal)
    seconds = count()
    observed = _RecordedDurations()
    engine.take_durations(Timings(lambda: float(next(seconds)), observed, one_in=1))
    engine.handle([NodeSeen(make_node(f"n{number}", cpu="2")) for number in range(3)], 0.0)
    running = [
        make_pod(f"r{number}", cpu="2", priority=9, node=f"n{number}") for number in range(3)
    ]
    engine.handle([AssignedPodSeen(pod) for pod in running], 0.0)
    waiting = [make_pod(f"p{number}", cpu="1", priority=1) for number in range(6)]
    engine.handle([PendingPodSeen(pod) for pod in waiting], 0.0)
    attempts = of_type(AttemptResult, engine.schedule(0.0, 6))
    assert [each.result for each in attempts] == ["unschedulable"] * 6
    assert len({each.message for each in attempts}) == 1
    (scheduled,) = [each for each in journal.entries if isinstance(each, ScheduleCall)]
    assert len(scheduled.choices) == 6
    assert [point for point, _, _ in observed.points] == ["PreFilter", "Filter", "PostFilter"]
    replay(journal, default_engine)


def _slow_engine(step_s: float) -> tuple[Engine, Journal]:
    """An engine whose clock advances by `step_s` whenever it is read."""
    journal, seconds = Journal(), count()
    profile = build_profile(KubeSchedulerProfile("default-scheduler"), in_tree_registry())
    engine = make_engine(
        [Framework(profile)], lambda _: 0, timer=lambda: next(seconds) * step_s, journal=journal
    )
    engine.handle([NodeSeen(make_node(name, cpu="2")) for name in ("a", "b")], 0.0)
    return engine, journal


def test_the_steps_of_a_slow_cycle_are_in_its_result() -> None:
    engine, journal = _slow_engine(0.125)
    engine.handle([PendingPodSeen(make_pod("p"))], 0.0)
    engine.handle([PendingPodSeen(make_pod("large", cpu="9"))], 0.0)
    placed, rejected = of_type(AttemptResult, engine.schedule(0.0, 2))
    assert dict(placed.steps).keys() == {"Snapshot", "PreFilter", "Filter", "Score"}
    assert dict(rejected.steps).keys() == {"Snapshot", "PreFilter", "Filter", "PostFilter"}
    for attempt in (placed, rejected):
        between_s = attempt.duration_s - sum(duration_s for _, duration_s in attempt.steps)
        assert between_s == 0.125
    replay(journal, default_engine)


def test_an_attempt_lasts_while_extenders_answer_but_not_while_it_waits_for_their_capacity() -> (
    None
):
    extenders = Extenders((Extender(url_prefix="http://e", filter_verb="filter"),), 1)
    profile = build_profile(KubeSchedulerProfile("default-scheduler"), in_tree_registry())
    seconds = [0.0]
    engine = make_engine(
        [Framework(profile)], lambda _: 0, timer=lambda: seconds[0], extenders=extenders
    )
    engine.handle([NodeSeen(make_node(name)) for name in ("a", "b")], 0.0)
    engine.handle([PendingPodSeen(make_pod(name)) for name in ("p", "q")], 0.0)
    answers = list(engine.schedule(0.0, 9))
    for waited_s in (3.0, 5.0):
        (question,) = of_type(ConsultExtenders, answers)
        seconds[0] += waited_s
        passed = ExtendersAnswered(question.pod.uid, question.number, question.node_names)
        answers = [*engine.handle([passed], 0.0), *engine.schedule(0.0, 9)]
        (attempt,) = of_type(AttemptResult, answers)
        assert (attempt.result, attempt.duration_s) == ("scheduled", waited_s)


def test_a_fast_cycle_has_no_steps() -> None:
    engine, _ = _slow_engine(0.001)
    engine.handle([PendingPodSeen(make_pod("p"))], 0.0)
    (attempt,) = of_type(AttemptResult, engine.schedule(0.0, 1))
    assert (attempt.result, attempt.steps) == ("scheduled", ())


def test_the_result_of_a_group_has_the_duration_of_its_algorithm() -> None:
    engine, journal = _slow_engine(0.125)
    engine.handle([PodGroupSeen(make_group(min_count=1)), PendingPodSeen(make_member("m"))], 0.0)
    (result,) = of_type(PodGroupAttemptResult, engine.schedule(0.0, 1))
    assert result.result == "scheduled"
    assert 0.0 < result.algorithm_duration_s < result.duration_s < 5.0
    replay(journal, default_engine)
