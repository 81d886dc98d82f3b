"""The engine assumes the plan of a Reserve plugin, and restores it if the pod is not bound."""

from __future__ import annotations

from stowage.api.events import BindFailed, BindSucceeded, NodeSeen, PendingPodSeen, StorageSeen
from stowage.api.instructions import AttemptResult, BindPod
from stowage.engine import Engine
from stowage.framework import CycleState, ReservePlan
from stowage.state import PodInfo
from tests.support.builders import make_node, make_pod
from tests.support.engines import default_engine, of_type
from tests.support.volume_builders import make_volume


class Planner:
    """A Reserve plugin that returns a fixed plan."""

    name = "Planner"

    def __init__(self) -> None:
        self.plan: ReservePlan | None = None

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> ReservePlan | None:
        return self.plan


def _engine(plan: ReservePlan | None) -> Engine:
    planner = Planner()
    planner.plan = plan
    engine = default_engine(plugins=[planner])
    engine.handle(
        [
            NodeSeen(make_node("n", cpu="4")),
            StorageSeen(make_volume("v", version="2")),
            PendingPodSeen(make_pod("p")),
        ],
        0.0,
    )
    return engine


def _assumed(engine: Engine) -> dict[str, str]:
    return engine.state.cache.assumed_storage()


def test_a_planned_volume_is_assumed_while_the_pod_is_being_bound() -> None:
    engine = _engine(ReservePlan(volumes=(make_volume("v", version="2", given_to="c"),)))
    (bind,) = of_type(BindPod, engine.schedule(0.0, 1))
    assert _assumed(engine) == {"volume v": "uid-p"}
    engine.validate()
    engine.handle([BindFailed(bind.pod.uid, bind.node_name, "no")], 1.0)
    assert _assumed(engine) == {}
    engine.validate()


def test_a_plan_made_from_an_outdated_volume_fails_the_attempt() -> None:
    engine = _engine(ReservePlan(volumes=(make_volume("v", version="1", given_to="c"),)))
    *_, failed = of_type(AttemptResult, engine.schedule(0.0, 1))
    assert failed.result == "error"
    assert failed.message.startswith("running Reserve plugin \"Planner\": PersistentVolume 'v'")
    assert engine.plugin_failure_counts() == {"Planner": 1}
    assert _assumed(engine) == {}
    engine.validate()


def test_a_reserve_plugin_may_return_nothing() -> None:
    engine = _engine(None)
    (bind,) = of_type(BindPod, engine.schedule(0.0, 1))
    engine.handle([BindSucceeded(bind.pod.uid, bind.node_name)], 1.0)
    assert engine.in_flight() == 0
