"""The attempt of one pod takes several steps if it is long, and decides as one call does."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import pytest

from stowage.api.events import AssignedPodSeen, NodeSeen, PendingPodSeen, PodGroupSeen
from stowage.api.instructions import BindPod, EvictPod
from stowage.api.objects.node import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from stowage.api.objects.pod import Affinity, NodeAffinity, Pod, PodAffinity, PodAffinityTerm
from stowage.engine import Engine
from stowage.plugins.default_preemption import victims
from stowage.state.nodes import label_columns
from stowage.state.pods import label_groups
from stowage.state.pods.pod_class import MANY_TERMS
from tests.stories.gang_driver import make_group, make_member
from tests.support.builders import ZONE, affinity_term, label_selector, make_node, make_pod
from tests.support.engines import default_engine, of_type
from tests.support.steps import counted

NUM_NODES = 300
PODS_ON_LAST = 40
NUM_STEPS = 3
ROWS_PER_STEP = 100


def _full_nodes() -> Engine:
    """Full nodes, and a pod that may evict the pods of the last node only."""
    engine = default_engine()
    nodes = [make_node(f"n{index}", cpu=str(PODS_ON_LAST)) for index in range(NUM_NODES)]
    engine.handle(map(NodeSeen, nodes), 0.0)
    for index in range(NUM_NODES - 1):
        large = make_pod(f"large-{index}", cpu=str(PODS_ON_LAST), node=f"n{index}", priority=1000)
        small = make_pod(f"small-{index}", node=f"n{index}")
        engine.handle([AssignedPodSeen(large), AssignedPodSeen(small)], 0.0)
    for index in range(PODS_ON_LAST):
        low = make_pod(f"low-{index}", cpu="1", node=f"n{NUM_NODES - 1}", priority=index)
        engine.handle([AssignedPodSeen(low)], 0.0)
    half = str(PODS_ON_LAST // 2)
    engine.handle([PendingPodSeen(make_pod("p", cpu=half, priority=100))], 0.0)
    return engine


def test_preemption_is_decided_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(victims, "ROWS_TRIED_PER_STEP", 200)
    at_once, in_steps = _full_nodes(), _full_nodes()
    num_steps, answer = counted(in_steps.scheduling_steps(0.0, 1))
    num_searches, num_reprieves = 3, PODS_ON_LAST // 2
    assert num_steps >= num_searches + num_reprieves // 2
    assert answer == at_once.schedule(0.0, 1)
    assert in_steps.dump() == at_once.dump()
    evicted = {each.victim.name for each in of_type(EvictPod, answer)}
    # The last victim is evicted after the others.
    assert evicted == {f"low-{index}" for index in range(1, PODS_ON_LAST // 2)}
    in_steps.validate()


def _two_nodes(affinity: Affinity) -> Engine:
    """Two nodes, of which only ``b`` has a pod, and a pod with an affinity."""
    engine = default_engine()
    engine.handle([NodeSeen(make_node(name, zone=name)) for name in ("a", "b")], 0.0)
    running = make_pod("running", node="b", labels={"app": "web"})
    engine.handle([AssignedPodSeen(running)], 0.0)
    engine.handle([PendingPodSeen(make_pod("p", affinity=affinity))], 0.0)
    return engine


def _of_nodes(number: int) -> Affinity:
    terms = [_zone_term(f"no-{index}") for index in range(number - 1)]
    return Affinity(node_affinity=NodeAffinity(NodeSelector((*terms, _zone_term("b")))))


def _zone_term(value: str) -> NodeSelectorTerm:
    return NodeSelectorTerm((NodeSelectorRequirement(ZONE, "In", (value,)),))


def _to_pods(number: int) -> Affinity:
    return Affinity(pod_affinity=PodAffinity(_terms(number, "NotIn")))


def _against_pods(number: int) -> Affinity:
    return Affinity(pod_anti_affinity=PodAffinity(_terms(number, "In")))


def _terms(number: int, operator: str) -> tuple[PodAffinityTerm, ...]:
    """Terms of which the pod that runs meets the first, and if they exclude values, all."""
    values = ["web" if operator == "In" else "db", *(f"no-{index}" for index in range(1, number))]
    return tuple(
        affinity_term(ZONE, label_selector(None, ("app", operator, (value,)))) for value in values
    )


@pytest.mark.parametrize(
    ("affinity", "node_name"),
    [(_of_nodes, "b"), (_to_pods, "b"), (_against_pods, "a")],
    ids=["node affinity", "affinity", "anti-affinity"],
)
def test_a_pod_with_many_terms_is_attempted_in_several_steps(
    affinity: Callable[[int], Affinity], node_name: str
) -> None:
    make = partial(_two_nodes, affinity(MANY_TERMS + 1))
    at_once, in_steps = make(), make()
    num_steps, answer = counted(in_steps.scheduling_steps(0.0, 1))
    assert num_steps >= len(("PreFilter", "Filter", "assume")) - 1
    assert answer == at_once.schedule(0.0, 1)
    assert in_steps.dump() == at_once.dump()
    (binding,) = of_type(BindPod, answer)
    assert binding.node_name == node_name
    in_steps.validate()


def test_a_pod_with_few_terms_is_attempted_in_one_step() -> None:
    engine = _two_nodes(_to_pods(MANY_TERMS // 10))
    engine.handle([PendingPodSeen(make_pod("q", affinity=_to_pods(MANY_TERMS // 10)))], 0.0)
    engine.schedule(0.0, 1)
    assert counted(engine.scheduling_steps(0.0, 1))[0] == 0


@pytest.fixture
def _few_rows_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (label_columns, label_groups):
        monkeypatch.setattr(module, "ROWS_PER_STEP", ROWS_PER_STEP)


def _many_label_groups(pending: Iterable[Pod]) -> Engine:
    """A node of pods of which no two have the same labels, and pending pods."""
    engine = default_engine()
    num_pods = NUM_STEPS * ROWS_PER_STEP + 1
    node = make_node("n", zone="z", pods=num_pods + 100, cpu="1000000", memory="1000Ti")
    engine.handle([NodeSeen(node)], 0.0)
    for index in range(num_pods):
        running = make_pod(f"running-{index}", node="n", labels={"app": f"app-{index}"})
        engine.handle([AssignedPodSeen(running)], 0.0)
    engine.handle(map(PendingPodSeen, pending), 0.0)
    return engine


def _near(app: str) -> Affinity:
    return Affinity(pod_affinity=PodAffinity((affinity_term(ZONE, label_selector({"app": app})),)))


@pytest.mark.usefixtures("_few_rows_a_step")
def test_the_column_of_a_label_of_many_pods_is_filled_in_steps() -> None:
    pods = [make_pod("p", affinity=_near("app-7")), make_pod("q", affinity=_near("app-8"))]
    at_once, in_steps = _many_label_groups(pods), _many_label_groups(pods)
    num_steps, answer = counted(in_steps.scheduling_steps(0.0, 1))
    assert num_steps >= NUM_STEPS
    assert answer == at_once.schedule(0.0, 1)
    assert len(of_type(BindPod, answer)) == 1
    assert counted(in_steps.scheduling_steps(0.0, 1))[0] == 0
    in_steps.validate()


@pytest.mark.usefixtures("_few_rows_a_step")
def test_the_columns_that_members_of_a_pod_group_need_are_filled_in_steps() -> None:
    num_steps: list[int] = []
    for affinity in (None, _near("app-7")):
        engine = _many_label_groups(())
        members = [make_member(name, affinity=affinity) for name in ("p", "q")]
        engine.handle([PodGroupSeen(make_group(min_count=2))], 0.0)
        engine.handle(map(PendingPodSeen, members), 0.0)
        number, answer = counted(engine.scheduling_steps(0.0, 1))
        num_steps.append(number)
        assert len(of_type(BindPod, answer)) == len(members)
        engine.validate()
    without, with_affinity = num_steps
    assert with_affinity - without >= NUM_STEPS
