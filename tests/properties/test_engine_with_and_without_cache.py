"""The engine returns equal instructions with and without the answer cache."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from stowage.api.config.loading import KubeSchedulerProfile
from stowage.api.events import (
    AssignedPodGone,
    AssignedPodSeen,
    BindFailed,
    BindSucceeded,
    Event,
    NodeGone,
    NodeSeen,
    PendingPodGone,
    PendingPodSeen,
)
from stowage.api.instructions import AttemptResult, BindPod, Instruction
from stowage.api.objects.pod import Affinity, Pod, PodAffinity
from stowage.engine import Engine, make_engine
from stowage.framework import Framework, build_profile
from stowage.plugins import in_tree_registry
from tests.support.builders import (
    HOSTNAME,
    ZONE,
    affinity_term,
    label_selector,
    make_node,
    make_pod,
)

_NUM_NODES = 40
#: Fields of pods by kind; some kinds have equal node demand, and each kind has several classes.
_APART = affinity_term(HOSTNAME, label_selector({"color": "red"}))
_SORTS: tuple[dict[str, Any], ...] = (
    {"cpu": "500m"},
    {"cpu": "500m", "labels": {"app": "b"}},
    {"cpu": "500m", "labels": {"color": "red"}, "apart": True},
    {"cpu": "1", "node_selector": {ZONE: "x"}},
    {"cpu": "1", "host_ports": [80]},
    {"cpu": "3", "priority": 5},
)
#: Sequences of (action, kind or number).
_actions = st.tuples(
    st.sampled_from(["pods", "schedule", "bound", "failed", "gone", "node", "node gone"]),
    st.integers(0, 60),
)


@settings(max_examples=40, deadline=None)
@given(st.lists(_actions, min_size=5, max_size=40), st.integers(0, 2**16))
def test_instructions_are_equal_with_and_without_the_cache(
    actions: Sequence[tuple[str, int]], seed: int
) -> None:
    """Pods of equal and of different kinds are created; nodes and other pods change in between."""
    kept, asked = _engine(1024, seed), _engine(0, seed)
    bindings: list[BindPod] = []
    pods: dict[str, Pod] = {}
    for now, (action, number) in enumerate([("pods", 0), *actions, ("schedule", 60)]):
        if action == "schedule":
            answers = [each.schedule(float(now), number) for each in (kept, asked)]
        else:
            events = _events(action, number, now, pods, bindings)
            answers = [each.handle(events, float(now)) for each in (kept, asked)]
        assert [*map(_with_records, answers[0])] == [*map(_with_records, answers[1])]
        bindings += _bound_by(answers[0])
    kept.validate()


def _engine(class_cache_size: int, seed: int) -> Engine:
    config = KubeSchedulerProfile(scheduler_name="default-scheduler")
    framework = Framework(
        build_profile(config, in_tree_registry()), class_cache_size=class_cache_size
    )
    engine = make_engine([framework], random.Random(seed).randrange)
    nodes = [make_node(f"n{index}", cpu="2", zone="xyz"[index % 3]) for index in range(_NUM_NODES)]
    engine.handle([NodeSeen(node) for node in nodes], 0.0)
    return engine


def _with_records(instruction: Instruction) -> object:
    """The instruction with the best nodes as records: their columns depend on the cache."""
    if isinstance(instruction, AttemptResult) and instruction.best is not None:
        return replace(instruction, best=None), instruction.best.scored_nodes()
    return instruction


def _bound_by(answer: Sequence[Instruction]) -> Sequence[BindPod]:
    return [each for each in answer if isinstance(each, BindPod)]


def _events(
    action: str, number: int, now: int, pods: dict[str, Pod], bindings: list[BindPod]
) -> list[Event]:
    """The events of an action; `pods` and `bindings` are known pods and pending bindings."""
    if action == "pods":
        new = [_pod(f"p{now}-{index}", (number + index // 4) % 6) for index in range(12)]
        pods.update((pod.metadata.uid, pod) for pod in new)
        return [PendingPodSeen(pod) for pod in new]
    if action == "node":
        return [NodeSeen(make_node(f"n{number}", cpu=str(2 + now % 3), zone="xyz"[now % 3]))]
    if action == "node gone":
        return [NodeGone(f"n{number}")]
    if not bindings:
        return []
    binding = bindings.pop(number % len(bindings))
    uid = binding.pod.uid
    if action == "failed":
        return [BindFailed(uid, binding.node_name, "no")]
    gone = PendingPodGone(binding.pod.namespace, binding.pod.name, uid)
    placed = replace(pods[uid], spec=replace(pods[uid].spec, node_name=binding.node_name))
    bound: list[Event] = [BindSucceeded(uid, binding.node_name), gone, AssignedPodSeen(placed)]
    if action == "gone":
        bound.append(AssignedPodGone(binding.pod.namespace, binding.pod.name, uid))
    return bound


def _pod(name: str, sort: int) -> Pod:
    fields = dict(_SORTS[sort])
    if fields.pop("apart", False):
        rules = PodAffinity((_APART,))
        fields["affinity"] = Affinity(pod_anti_affinity=rules)
    return make_pod(name, **fields)
