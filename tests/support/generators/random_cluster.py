"""Small random clusters in which labels, selectors and domains often match.

Drawn from a seed, not from Hypothesis strategies: a dense cluster takes hundreds of choices, and
mistakes are found by many clusters with long histories.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar

from stowage.api.objects.meta import LabelSelector, LabelSelectorRequirement, OwnerReference
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
    WeightedPodAffinityTerm,
)
from tests.support.builders import HOSTNAME, ZONE, make_namespace, make_node, make_pod
from tests.support.mirrored_cluster import MirroredCluster, on_node

RACK = "rack"
_NODE_NAMES = tuple(f"n{index}" for index in range(7))
_POD_NAMES = tuple(f"p{index}" for index in range(16))
_NAMESPACES = ("default", "team-a", "team-b")
_OWNERS = (
    OwnerReference(kind="ReplicaSet", name="web", api_version="apps/v1", controller=True),
    OwnerReference(kind="StatefulSet", name="web", api_version="apps/v1", controller=True),
    OwnerReference(kind="ReplicationController", name="web", api_version="v1", controller=True),
)
_TAINTS = (
    Taint(key="dedicated", value="db", effect="NoSchedule"),
    Taint(key="dedicated", value="web", effect="NoExecute"),
    Taint(key="slow", effect="PreferNoSchedule"),
)
_TOLERATIONS = (
    Toleration(key="dedicated", operator="Exists"),
    Toleration(key="dedicated", value="db", effect="NoSchedule"),
)
T = TypeVar("T")


class RandomCluster:
    """Draws a cluster, changes of it, and pending pods.

    How many different labels, namespaces and topology keys there are is drawn first, so that
    in some clusters most objects match and in others few do.

    Args:
        seed: The same seed makes the same cluster and history.
        affinity: Whether pods have pod (anti)affinity and namespaces come and go.
        spread: Whether pending pods have spread constraints and workloads come and go.
    """

    def __init__(self, seed: int, *, affinity: bool = False, spread: bool = False) -> None:
        self.random = Random(seed)
        self._affinity = affinity
        self._spread = spread
        self._namespaces = _NAMESPACES[: self.random.randint(1, 3)]
        self._labels = {"app": ("a", "b")[: self.random.randint(1, 2)], "tier": ("x", "y")}
        self._keys = self.random.sample((HOSTNAME, ZONE, RACK), self.random.randint(1, 3))
        self._odd = self.random.random() < 0.3
        self.cluster = MirroredCluster()
        for name in _NODE_NAMES[: self.random.randint(2, 6)]:
            self.cluster.update_node(self._node(name))
        for _ in range(self.random.randint(0, 10)):
            self._place_pod()
        for _ in range(3):
            self._change_other_objects()

    def happen(self) -> None:
        """Apply one random change; half of them are changes of pods."""
        changes: Sequence[Callable[[], None]] = (
            self._place_pod,
            self._place_pod,
            self._drop_pod,
            self._change_node,
            self._change_node,
            self._drop_node,
            self._change_other_objects,
            self._change_other_objects,
        )
        self.random.choice(changes)()

    def pending_pod(self, name: str) -> Pod:
        """A pending pod with random constraints."""
        return self._pod(name, choosy=True)

    def _chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def _some(self, values: Sequence[T], most: int) -> tuple[T, ...]:
        return tuple(self.random.sample(values, self.random.randint(0, min(most, len(values)))))

    def _node(self, name: str) -> Node:
        node = make_node(name, taints=self._some(_TAINTS, 1) if self._chance(0.4) else ())
        labels = node.metadata.labels
        if self._odd and self._chance(0.3):
            labels.pop(HOSTNAME)
        elif self._odd and self._chance(0.3):
            labels[HOSTNAME] = "shared"
        if self._chance(0.85):
            labels[ZONE] = self.random.choice(("a", "b", "c", "") if self._odd else ("a", "b"))
        if self._chance(0.85):
            labels[RACK] = self.random.choice(("r1", "r2", "r3"))
        return node

    def _change_node(self) -> None:
        self.cluster.update_node(self._node(self.random.choice(_NODE_NAMES)))

    def _drop_node(self) -> None:
        if self._chance(0.5) and self.cluster.plain.nodes:
            self.cluster.remove_node(self.random.choice(list(self.cluster.plain.nodes)))

    def _place_pod(self) -> None:
        pod = self._pod(self.random.choice(_POD_NAMES), choosy=self._affinity)
        self.cluster.update_pod(on_node(pod, self.random.choice(_NODE_NAMES[:6])))

    def _drop_pod(self) -> None:
        if self.cluster.plain.pods:
            self.cluster.remove_pod(self.random.choice(list(self.cluster.plain.pods)))

    def _pod(self, name: str, *, choosy: bool) -> Pod:
        return make_pod(
            name,
            namespace=self.random.choice(self._namespaces),
            labels=self._pod_labels(),
            affinity=self._pod_affinity_rules() if choosy else None,
            tolerations=self._some(_TOLERATIONS, 1),
            owner=self.random.choice((None, *_OWNERS)) if self._spread else None,
            terminating=self._chance(0.15),
            node_selector={ZONE: "a"} if self._chance(0.2) else {},
            topology_spread_constraints=self._constraints() if choosy and self._spread else (),
        )

    def _pod_labels(self) -> dict[str, str]:
        return {
            key: self.random.choice(values)
            for key, values in self._labels.items()
            if self._chance(0.8)
        }

    def _selector(self) -> LabelSelector | None:
        kind = self.random.random()
        if kind < 0.08:
            return None
        if kind < 0.16:
            return LabelSelector()
        if kind < 0.6:
            return LabelSelector(match_labels={"app": self.random.choice(("a", "b"))})
        key = self.random.choice(("app", "tier"))
        operator = self.random.choice(("In", "NotIn", "Exists", "DoesNotExist"))
        values = ("a", "x") if operator in ("In", "NotIn") else ()
        wanted = LabelSelectorRequirement(key=key, operator=operator, values=values)
        return LabelSelector(
            match_labels={"tier": "x"} if self._chance(0.3) else {}, match_expressions=(wanted,)
        )

    def _namespace_selector(self) -> LabelSelector | None:
        kind = self.random.random()
        if kind < 0.6:
            return None
        if kind < 0.7:
            return LabelSelector()
        operator = self.random.choice(("In", "DoesNotExist"))
        values = ("a",) if operator == "In" else ()
        wanted = LabelSelectorRequirement(key="team", operator=operator, values=values)
        return LabelSelector(match_expressions=(wanted,))

    def _term(self) -> PodAffinityTerm:
        return PodAffinityTerm(
            topology_key=self.random.choice(self._keys),
            label_selector=self._selector(),
            namespaces=self._some(self._namespaces, 2) if self._chance(0.4) else (),
            namespace_selector=self._namespace_selector(),
        )

    def _pod_affinity(self) -> PodAffinity | None:
        if self._chance(0.35):
            return None
        required = tuple(self._term() for _ in range(self.random.randint(0, 2)))
        preferred = tuple(
            WeightedPodAffinityTerm(self.random.choice((1, 7, 100)), self._term())
            for _ in range(self.random.randint(0, 2))
        )
        return PodAffinity(required, preferred)

    def _pod_affinity_rules(self) -> Affinity:
        return Affinity(
            node_affinity=self._node_affinity() if self._chance(0.3) else None,
            pod_affinity=self._pod_affinity() if self._affinity else None,
            pod_anti_affinity=self._pod_affinity() if self._affinity else None,
        )

    def _node_affinity(self) -> NodeAffinity:
        wanted = NodeSelectorRequirement(
            key=self.random.choice((ZONE, RACK)),
            operator=self.random.choice(("In", "NotIn")),
            values=("a", "r1"),
        )
        return NodeAffinity(
            required_during_scheduling_ignored_during_execution=NodeSelector(
                (NodeSelectorTerm(match_expressions=(wanted,)),)
            )
        )

    def _constraints(self) -> tuple[TopologySpreadConstraint, ...]:
        return tuple(
            TopologySpreadConstraint(
                max_skew=self.random.randint(1, 3),
                topology_key=self.random.choice(self._keys),
                when_unsatisfiable=self.random.choice(("DoNotSchedule", "ScheduleAnyway")),
                label_selector=self._selector(),
                min_domains=self.random.choice((None, None, 1, 2, 4)),
                node_affinity_policy=self.random.choice((None, "Honor", "Ignore")),
                node_taints_policy=self.random.choice((None, "Honor", "Ignore")),
                match_label_keys=self.random.choice(((), (), ("tier",), ("app", "absent"))),
            )
            for _ in range(self.random.choice((0, 0, 1, 2, 3)))
        )

    def _change_other_objects(self) -> None:
        if self._affinity:
            self._change_namespace()
        if self._spread:
            self._change_workload()

    def _change_namespace(self) -> None:
        name = self.random.choice(self._namespaces)
        if name in self.cluster.plain.namespaces and self._chance(0.3):
            self.cluster.remove_namespace(name)
        else:
            team = self.random.choice(({}, {"team": "a"}, {"team": "b"}))
            self.cluster.update_namespace(make_namespace(name, labels=team))

    def _change_workload(self) -> None:
        kinds = ("Service", "Service", "ReplicaSet", "StatefulSet", "ReplicationController")
        kind, namespace = self.random.choice(kinds), self.random.choice(self._namespaces)
        name = self.random.choice(("web", "api")) if kind == "Service" else "web"
        if (kind, namespace, name) in self.cluster.plain.workloads and self._chance(0.3):
            self.cluster.remove_workload(kind, namespace, name)
            return
        selector = self._selector()
        if selector is not None and kind in ("Service", "ReplicationController"):
            selector = LabelSelector(match_labels=selector.match_labels)
        self.cluster.update_workload(kind, namespace, name, selector)
