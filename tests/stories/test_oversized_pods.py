"""Extremely large pods are scheduled, and the pods after them are bound."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from stowage.api.decoding.decode import KINDS, decode_object
from stowage.api.events import Event, NodeSeen, PendingPodSeen
from stowage.api.instructions import AttemptResult, BindPod, ReportProblem
from stowage.api.objects.pod import Pod
from stowage.api.reflected_kinds import REFLECTED_KINDS
from tests.support.builders import make_node, make_pod
from tests.support.engines import default_engine, of_type

TERM = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "x"}}}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def _containers(number: int, **requests: str) -> list[dict[str, Any]]:
    return [
        {"name": f"c{index}", "image": f"i{index}", "resources": {"requests": requests}}
        for index in range(number)
    ]


def _weighted(number: int) -> list[dict[str, Any]]:
    return [
        {"weight": 1, "podAffinityTerm": {**TERM, "topologyKey": f"key-{index}"}}
        for index in range(number)
    ]


SPECS: dict[str, tuple[dict[str, Any], str]] = {
    "ten thousand containers that fit": ({"containers": _containers(10_000)}, "scheduled"),
    "ten thousand containers that do not fit": (
        {"containers": _containers(10_000, cpu="1")},
        "unschedulable",
    ),
    "thousands of preferred affinity terms": (
        {"affinity": {"podAffinity": {PREFERRED: _weighted(3_000)}}},
        "scheduled",
    ),
    "thousands of required anti-affinity terms": (
        {
            "affinity": {
                "podAntiAffinity": {
                    REQUIRED: [{**TERM, "topologyKey": f"key-{index}"} for index in range(3_000)]
                }
            }
        },
        "scheduled",
    ),
    "thousands of node selector terms": (
        {
            "affinity": {
                "nodeAffinity": {
                    REQUIRED: {
                        "nodeSelectorTerms": [
                            {"matchExpressions": [{"key": f"k{n}", "operator": "Exists"}]}
                            for n in range(5_000)
                        ]
                    }
                }
            }
        },
        "unschedulable",
    ),
    "thousands of tolerations": (
        {"tolerations": [{"key": f"k{n}", "operator": "Exists"} for n in range(10_000)]},
        "scheduled",
    ),
    "thousands of spread constraints": (
        {
            "topologySpreadConstraints": [
                {"maxSkew": 1, "topologyKey": f"key-{n}", "whenUnsatisfiable": "ScheduleAnyway"}
                for n in range(2_000)
            ]
        },
        "scheduled",
    ),
    "thousands of host ports": (
        {
            "containers": [
                {
                    "name": "c",
                    "ports": [{"hostPort": n, "containerPort": n} for n in range(1, 10_000)],
                }
            ]
        },
        "scheduled",
    ),
}
SEEN: dict[str, Callable[[Any], Event]] = {each.kind: each.seen for each in REFLECTED_KINDS}
SELECTOR = {"matchLabels": {"app": "web"}}
CYCLE = ("ReplicaSet", "StatefulSet", "ReplicationController", "Pod", "Node")
LABELS = {f"label-{n}": f"value-{n}" for n in range(5_000)}


def _large_pod(spec: dict[str, Any], **metadata: Any) -> Pod:
    pod = {
        "metadata": {"name": "large", "namespace": "default", "uid": "uid-large", **metadata},
        "spec": {"containers": _containers(1), **spec},
    }
    return decode_object(Pod, msgspec.json.encode(pod))


@pytest.mark.parametrize("which", SPECS)
def test_a_large_pod_is_scheduled_or_rejected_and_the_next_pod_is_bound(which: str) -> None:
    spec, expected = SPECS[which]
    engine = default_engine()
    engine.handle([NodeSeen(make_node(f"n{n}", cpu="4")) for n in range(20)], 0.0)
    answer = engine.handle([PendingPodSeen(_large_pod(spec)), PendingPodSeen(make_pod("p"))], 0.0)
    answer += engine.schedule(0.0, 10)
    assert of_type(ReportProblem, answer) == []
    assert [each.result for each in of_type(AttemptResult, answer)] == [expected, "scheduled"]
    engine.validate()


def test_a_pod_of_one_megabyte_is_scheduled() -> None:
    engine = default_engine()
    engine.handle([NodeSeen(make_node("n"))], 0.0)
    pod = _large_pod({}, labels=LABELS, annotations={"note": "x" * 2**20})
    answer = engine.handle([PendingPodSeen(pod)], 0.0) + engine.schedule(0.0, 1)
    assert len(of_type(BindPod, answer)) == 1
    engine.validate()


def test_a_pod_is_bound_to_nodes_with_thousands_of_labels() -> None:
    engine = default_engine()
    nodes = [NodeSeen(make_node(f"n{n}", labels=LABELS)) for n in range(10)]
    pod = make_pod("p", node_selector={"label-7": "value-7"})
    answer = engine.handle([*nodes, PendingPodSeen(pod)], 0.0) + engine.schedule(0.0, 1)
    assert len(of_type(BindPod, answer)) == 1
    engine.validate()


def _owned(kind: str, uid: str, owner_kind: str, owner: str, **spec: Any) -> dict[str, Any]:
    reference = {"apiVersion": "v1", "kind": owner_kind, "name": owner, "uid": owner}
    metadata = {
        "name": uid,
        "namespace": "default",
        "uid": uid,
        "labels": {"app": "web"},
        "ownerReferences": [{**reference, "controller": True, "blockOwnerDeletion": True}],
    }
    return {"kind": kind, "metadata": metadata, "spec": spec}


def test_cycles_of_owner_references_delay_no_pod() -> None:
    engine = default_engine()
    engine.handle([NodeSeen(make_node(f"n{number}")) for number in range(3)], 0.0)
    cycle = list(zip(CYCLE, (*CYCLE[1:], CYCLE[0]), strict=True))
    events: list[Event] = []
    for kind, owner in cycle:
        selector = {"app": "web"} if kind == "ReplicationController" else SELECTOR
        raw = _owned(kind, kind.lower(), owner, owner.lower(), selector=selector)
        decoded: Any = decode_object(KINDS[kind], msgspec.json.encode(raw))
        events += [] if kind == "Pod" else [SEEN[kind](decoded)]
    containers = {"containers": _containers(1)}
    for uid, owner in (("pod", "node"), ("self", "self"), ("a", "b"), ("b", "a")):
        raw = _owned("Pod", uid, "Pod", owner, **containers)
        events.append(PendingPodSeen(decode_object(Pod, msgspec.json.encode(raw))))
    answer = engine.handle(events, 0.0) + engine.schedule(0.0, 10)
    assert sorted(each.pod.name for each in of_type(BindPod, answer)) == ["a", "b", "pod", "self"]
    assert of_type(ReportProblem, answer) == []
    engine.validate()
