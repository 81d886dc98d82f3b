"""The type of a requeue case, and functions that build one.

The scenarios follow ``CoreResourceEnqueueTestCases`` in the integration tests of kube-scheduler
v1.36, and add some that are missing there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stowage.api.objects.meta import ApiStruct
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
from tests.support.builders import affinity_term, label_selector, make_node, make_pod


@dataclass(frozen=True)
class Put:
    """A user creates or updates an object."""

    obj: ApiStruct


@dataclass(frozen=True)
class Delete:
    """A user deletes an object."""

    obj: ApiStruct


@dataclass(frozen=True)
class RequeueCase:
    """Pods that fit on no node, an event, and the pods that the event requeues.

    Attributes:
        name: The case in a sentence.
        plugins: Enabled besides PrioritySort and DefaultBinder; empty means the default profile.
        objects: The initial objects; pods among them have a node.
        pending: The pods that are tried and found unschedulable.
        trigger: The changes that users make then.
        requeued: The names of the pods that are retried; the others keep waiting.
    """

    name: str
    plugins: tuple[str, ...]
    pending: Sequence[Pod]
    trigger: Sequence[Put | Delete]
    requeued: frozenset[str] = field(default_factory=frozenset)
    objects: Sequence[ApiStruct] = ()

    @property
    def title(self) -> str:
        """Names of the plugins, and the name of the case."""
        return f"{' and '.join(self.plugins) or 'all plugins'}: {self.name}"


def only(*names: str) -> frozenset[str]:
    """The names of the pods that are retried."""
    return frozenset(names)


NO_PODS = only()


def node(name: str = "n", labels: Mapping[str, str] | None = None, **more: Any) -> Node:
    """A node, by default with four CPUs."""
    return make_node(name, labels=labels, **more)


def pod(name: str, labels: Mapping[str, str] | None = None, **more: Any) -> Pod:
    """A pod without a node."""
    return make_pod(name, labels=labels, **more)


def placed(name: str, on: str, labels: Mapping[str, str] | None = None, **more: Any) -> Pod:
    """A pod that runs on a node."""
    return make_pod(name, labels=labels, node=on, **more)


def taint(key: str, value: str = "", effect: str = "NoSchedule") -> Taint:
    """A taint."""
    return Taint(key=key, value=value, effect=effect)


def tolerates(key: str) -> Toleration:
    """Tolerates every taint of a key."""
    return Toleration(key=key, operator="Exists")


def wants_node(key: str, operator: str, *values: str) -> Affinity:
    """Requires nodes with a label that satisfies the expression."""
    term = NodeSelectorTerm(match_expressions=(NodeSelectorRequirement(key, operator, values),))
    return _node_affinity(term)


def wants_node_named(name: str) -> Affinity:
    """Requires the node of this name."""
    return _node_affinity(
        NodeSelectorTerm(match_fields=(NodeSelectorRequirement("metadata.name", "In", (name,)),))
    )


def near(*terms: PodAffinityTerm) -> Affinity:
    """Requires pods in the same topology domain."""
    required = PodAffinity(required_during_scheduling_ignored_during_execution=terms)
    return Affinity(pod_affinity=required)


def apart(*terms: PodAffinityTerm) -> Affinity:
    """Requires a topology domain without these pods."""
    required = PodAffinity(required_during_scheduling_ignored_during_execution=terms)
    return Affinity(pod_anti_affinity=required)


def pods_with(key: str, topology_key: str, **more: Any) -> PodAffinityTerm:
    """A term for pods that have a label, within one topology domain."""
    return affinity_term(topology_key, label_selector(None, (key, "Exists", ())), **more)


def spread(
    key: str, topology_key: str, min_domains: int | None = None, **more: Any
) -> tuple[TopologySpreadConstraint, ...]:
    """A hard spread constraint on pods with this label with a maximum skew of 1."""
    selector = label_selector(None, (key, "Exists", ()))
    constraint = TopologySpreadConstraint(
        max_skew=1,
        topology_key=topology_key,
        when_unsatisfiable="DoNotSchedule",
        label_selector=selector,
        min_domains=min_domains,
        **more,
    )
    return (constraint,)


def _node_affinity(term: NodeSelectorTerm) -> Affinity:
    required = NodeAffinity(
        required_during_scheduling_ignored_during_execution=NodeSelector((term,))
    )
    return Affinity(node_affinity=required)
