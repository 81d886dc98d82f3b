"""A Reserve plugin notes on a pod what the pod takes of its node."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from stowage.api.events import (
    AssignedPodSeen,
    BindFailed,
    BindSucceeded,
    NodeSeen,
    PendingPodSeen,
)
from stowage.api.instructions import AttemptResult, BindPod
from stowage.engine import Engine
from stowage.framework.authoring import CycleState, PodInfo, ReservePlan
from stowage.state import Snapshot
from tests.support.builders import make_node, make_pod
from tests.support.engines import default_engine, of_type

SLOT = "reserved.stowage/slot"


class Slots:
    """Reserves a slot with a fixed annotation."""

    name = "Slots"

    def __init__(self, annotations: dict[str, str]) -> None:
        self.annotations = annotations

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> ReservePlan:
        return ReservePlan(annotations=self.annotations)


def _engine(annotations: dict[str, str]) -> Engine:
    engine = default_engine(plugins=[Slots(annotations)])
    engine.handle([NodeSeen(make_node("n")), PendingPodSeen(make_pod("p"))], 0.0)
    return engine


def _reserved(engine: Engine) -> tuple[tuple[str, str], ...] | None:
    pod = engine.state.cache.get_pod("uid-p")
    return None if pod is None else pod.reserved


def _snapshot(engine: Engine) -> Snapshot:
    return engine.state.cache.snapshot()


def test_the_binding_writes_the_annotation_and_the_assumed_pod_has_it() -> None:
    engine = _engine({SLOT: "7"})
    (bind,) = of_type(BindPod, engine.schedule(0.0, 1))
    assert bind.annotations == {SLOT: "7"}
    assert _reserved(engine) == ((SLOT, "7"),)
    engine.validate()


def test_the_annotation_outlives_an_update_of_the_pending_pod() -> None:
    engine = _engine({SLOT: "7"})
    engine.schedule(0.0, 1)
    engine.handle([PendingPodSeen(make_pod("p", labels={"a": "b"}, resource_version="9"))], 1.0)
    assert _reserved(engine) == ((SLOT, "7"),)
    engine.validate()


def test_a_pod_that_is_not_bound_loses_the_annotation() -> None:
    engine = _engine({SLOT: "7"})
    engine.schedule(0.0, 1)
    assert _reserved(engine) is not None
    engine.handle([BindFailed("uid-p", "n", "no")], 1.0)
    assert _reserved(engine) is None
    engine.validate()


def test_the_annotation_is_read_from_a_bound_pod_and_no_other_one_is_kept() -> None:
    engine = _engine({})
    pod = make_pod("q", node="n")
    noted = replace(pod.metadata, annotations={SLOT: "3", "checksum": "f00"})
    engine.handle([AssignedPodSeen(replace(pod, metadata=noted))], 1.0)
    placed = engine.state.cache.get_pod("uid-q")
    assert placed is not None
    assert placed.reserved == ((SLOT, "3"),)


def test_a_changed_annotation_changes_the_usage_of_the_node() -> None:
    engine = _engine({SLOT: "7"})
    engine.schedule(0.0, 1)
    before = _snapshot(engine).usage_changes.generation
    bound = make_pod("p", node="n")
    same = replace(bound, metadata=replace(bound.metadata, annotations={SLOT: "7"}))
    engine.handle([BindSucceeded("uid-p", "n"), AssignedPodSeen(same)], 1.0)
    assert _snapshot(engine).usage_changes.generation == before
    other = replace(bound, metadata=replace(bound.metadata, annotations={SLOT: "8"}))
    engine.handle([AssignedPodSeen(other)], 2.0)
    assert _snapshot(engine).usage_changes.generation == before + 1


@pytest.mark.parametrize(
    ("annotations", "error"),
    [
        ({"slot": "7"}, "annotation 'slot', expected reserved.stowage/ and a name of at most 63"),
        ({"reserved.stowage/a b": "7"}, "annotation 'reserved.stowage/a b', expected"),
        ({SLOT: 7}, "answered 7, expected str"),
    ],
)
def test_an_unusable_annotation_fails_the_attempt(annotations: dict[str, str], error: str) -> None:
    engine = _engine(annotations)
    *_, failed = of_type(AttemptResult, engine.schedule(0.0, 1))
    assert failed.result == "error"
    assert error in failed.message
    assert _reserved(engine) is None
