"""Random nodes and pods with every scheduling field, from few values, so that they interact."""

from __future__ import annotations

from random import Random
from typing import Any

from msgspec.structs import replace

from stowage.api.objects.meta import LabelSelector, ObjectMeta
from stowage.api.objects.node import (
    Node,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Taint,
)
from stowage.api.objects.pod import (
    Affinity,
    NodeAffinity,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    Toleration,
    TopologySpreadConstraint,
)
from stowage.api.objects.policy import (
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
)
from tests.support.builders import HOSTNAME, ZONE, label_selector, make_node, make_pod

NODES = ("n0", "n1", "n2", "n3")
NAMESPACES = ("default", "other")
ZONES = ("a", "b", None)
TEAMS = ("red", "blue")
APPS = ("a", "b")
TROUBLES = (Taint("trouble", "", "NoSchedule"), Taint("trouble", "", "NoExecute"))


def draw_node(rng: Random, name: str) -> Node:
    """A node with random capacity, taints and zone."""
    labels = {"disk": rng.choice(("ssd", "hdd"))} if rng.random() < 0.5 else {}
    return make_node(
        name,
        cpu=rng.choice(("1", "2", "3")),
        pods=rng.choice((2, 4, 4)),
        allocatable={"example.com/gpu": "1"} if rng.random() < 0.3 else None,
        zone=rng.choice(ZONES),
        labels=labels,
        taints=[rng.choice(TROUBLES)] if rng.random() < 0.2 else [],
        unschedulable=rng.random() < 0.1,
    )


def draw_pod(rng: Random, name: str, **given: Any) -> Pod:
    """A pod with random requests and constraints."""
    fields: dict[str, Any] = {
        "cpu": rng.choice(("500m", "1", "1500m", "2")),
        "namespace": rng.choice(NAMESPACES),
        "labels": draw_labels(rng),
        "priority": rng.choice((0, 0, 5, 10)),
    }
    for may_draw in (_draw_neighbours, _draw_spread, _draw_places, _draw_extras):
        if rng.random() < 0.3:
            fields |= may_draw(rng)
    return make_pod(name, **(fields | given))


def draw_labels(rng: Random) -> dict[str, str]:
    """The labels of a pod."""
    labels = {"app": rng.choice(APPS)}
    if rng.random() < 0.3:
        labels["version"] = rng.choice(("1", "2"))
    return labels


def draw_budget(rng: Random) -> PodDisruptionBudget:
    """A PodDisruptionBudget for one of the apps."""
    return PodDisruptionBudget(
        ObjectMeta(name="budget", namespace="default"),
        PodDisruptionBudgetSpec(_of_app(rng)),
        PodDisruptionBudgetStatus(disruptions_allowed=rng.randrange(2)),
    )


def _of_app(rng: Random) -> LabelSelector:
    return label_selector({"app": rng.choice(APPS)})


def _draw_term(rng: Random) -> PodAffinityTerm:
    term = PodAffinityTerm(topology_key=rng.choice((HOSTNAME, ZONE)), label_selector=_of_app(rng))
    match rng.randrange(3):
        case 0:
            term = replace(term, namespaces=NAMESPACES)
        case 1:
            term = replace(term, namespace_selector=_of_team(rng))
    return term


def _of_team(rng: Random) -> LabelSelector:
    return label_selector({"team": rng.choice(TEAMS)})


def _draw_neighbours(rng: Random) -> dict[str, Any]:
    terms = tuple(_draw_term(rng) for _ in range(rng.randint(1, 2)))
    if rng.random() < 0.5:
        return {"affinity": Affinity(pod_affinity=PodAffinity(terms))}
    return {"affinity": Affinity(pod_anti_affinity=PodAffinity(terms))}


def _draw_spread(rng: Random) -> dict[str, Any]:
    constraint = TopologySpreadConstraint(
        max_skew=rng.randint(1, 2),
        topology_key=rng.choice((HOSTNAME, ZONE)),
        when_unsatisfiable=rng.choice(("DoNotSchedule", "DoNotSchedule", "ScheduleAnyway")),
        label_selector=_of_app(rng),
        node_affinity_policy=rng.choice((None, "Honor", "Ignore")),
        node_taints_policy=rng.choice((None, "Honor", "Ignore")),
        match_label_keys=("version",) if rng.random() < 0.2 else (),
    )
    if constraint.when_unsatisfiable == "DoNotSchedule" and rng.random() < 0.3:
        constraint = replace(constraint, min_domains=rng.randint(1, 3))
    return {"topology_spread_constraints": (constraint,)}


def _draw_places(rng: Random) -> dict[str, Any]:
    match rng.randrange(4):
        case 0:
            return {"node_selector": {"disk": "ssd"}}
        case 1:
            return {"node_selector": {HOSTNAME: rng.choice(NODES)}}
        case 2:
            return {"affinity": _draw_node_affinity(rng)}
        case _:
            return {"tolerations": [rng.choice((Toleration("trouble", "Exists"), TOLERATE_ALL))]}


TOLERATE_ALL = Toleration("", "Exists")


def _draw_node_affinity(rng: Random) -> Affinity:
    operator, values = rng.choice((("In", ("ssd",)), ("NotIn", ("ssd",)), ("Exists", ())))
    term = NodeSelectorTerm((NodeSelectorRequirement("disk", operator, values),))
    return Affinity(NodeAffinity(NodeSelector((term,))))


def _draw_extras(rng: Random) -> dict[str, Any]:
    match rng.randrange(3):
        case 0:
            return {"host_ports": [rng.choice((80, 443))]}
        case 1:
            return {"gates": ["wait"]}
        case _:
            return {"requests": {"example.com/gpu": "1"}}
