"""Compiled spread constraints: those of a pod's spec, or the defaults with a derived selector."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple
from weakref import WeakKeyDictionary

import msgspec

from stowage.api.objects.meta import LabelSelector
from stowage.api.objects.pod import TopologySpreadConstraint
from stowage.api.values.selectors import (
    NOTHING,
    Operator,
    Requirement,
    Selector,
    compile_label_selector,
    selector_from_labels,
)
from stowage.plugins.pod_topology_spread.args import PodTopologySpreadArgs
from stowage.state.pods.pod_info import PodClass, PodInfo
from stowage.state.workloads import Workloads

HONOR = "Honor"


class Scope(NamedTuple):
    """The fields of a constraint that decide which nodes are eligible for it.

    Attributes:
        topology_key: The label whose values are the domains.
        honors_affinity: Whether nodes count only if the pod's node affinity allows them.
        honors_taints: Whether nodes count only if the pod tolerates their taints.
    """

    topology_key: str
    honors_affinity: bool
    honors_taints: bool


class SpreadConstraint(msgspec.Struct, frozen=True):
    """One constraint, ready to be counted (``topologySpreadConstraint`` of v1.36).

    Attributes:
        selector: The pods that count, within the pod's namespace.
        min_domains: With fewer eligible domains than this the lowest count is taken to be 0.
        matches_self: 1 if the selector matches the pod itself, else 0.
    """

    max_skew: int
    scope: Scope
    selector: Selector
    min_domains: int
    matches_self: int

    @property
    def topology_key(self) -> str:
        """The label whose values are the domains."""
        return self.scope.topology_key


Constraints = tuple[SpreadConstraint, ...]


class _Deduced(NamedTuple):
    """Default constraints, and the generation of the workloads they were made from."""

    generation: int
    constraints: Constraints


class ConstraintsOf:
    """The constraints of pods, kept per class.

    A class belongs to one cluster, so its workloads are always the same object.

    Args:
        args: Contains the default constraints.
        reads_label_keys: Whether ``matchLabelKeys`` matter.
    """

    def __init__(self, args: PodTopologySpreadArgs, *, reads_label_keys: bool = True) -> None:
        self._reads_label_keys = reads_label_keys
        self._defaults = tuple(each.as_spread_constraint() for each in args.effective_constraints)
        self._default_actions = frozenset(each.when_unsatisfiable for each in self._defaults)
        self._own: WeakKeyDictionary[PodClass, dict[str, Constraints]] = WeakKeyDictionary()
        self._deduced: WeakKeyDictionary[PodClass, dict[str, _Deduced]] = WeakKeyDictionary()

    def own(self, pod: PodInfo, action: str) -> Constraints:
        """The constraints in the pod's spec whose ``whenUnsatisfiable`` is `action`.

        Raises:
            SelectorError: A selector has an operator, key or value that is not allowed.
        """
        pod_class = pod.pod_class
        of_class = self._own.setdefault(pod_class, {})
        known = of_class.get(action)
        if known is None:
            known = of_class[action] = tuple(
                _compile(each, self._selector(each, pod_class), pod_class)
                for each in pod_class.spec.topology_spread_constraints
                if each.when_unsatisfiable == action
            )
        return known

    def of(self, pod: PodInfo, action: str, workloads: Workloads) -> Constraints:
        """The pod's own constraints or, if it has none at all, the defaults.

        Raises:
            SelectorError: A selector has an operator, key or value that is not allowed.
        """
        if pod.pod_class.spec.topology_spread_constraints:
            return self.own(pod, action)
        if not self.has_defaults(action):
            return ()
        of_class = self._deduced.setdefault(pod.pod_class, {})
        known = of_class.get(action)
        if known is None or known.generation != workloads.generation:
            constraints = self._from_defaults(pod.pod_class, action, workloads)
            known = of_class[action] = _Deduced(workloads.generation, constraints)
        return known.constraints

    def has_defaults(self, action: str) -> bool:
        """Whether the ``whenUnsatisfiable`` of a default constraint is `action`."""
        return action in self._default_actions

    def topology_keys(self, pod: PodInfo, action: str) -> tuple[str, ...]:
        """The topology keys of the pod's constraints, or of the defaults if it has none."""
        return tuple(each.topology_key for each in self._declared(pod, action))

    def honors_taints(self, pod: PodInfo, action: str) -> bool:
        """Whether one of these constraints leaves out nodes with taints not tolerated."""
        return any(each.node_taints_policy == HONOR for each in self._declared(pod, action))

    def _declared(self, pod: PodInfo, action: str) -> Iterator[TopologySpreadConstraint]:
        declared = pod.pod_class.spec.topology_spread_constraints or self._defaults
        return (each for each in declared if each.when_unsatisfiable == action)

    def _selector(self, constraint: TopologySpreadConstraint, pod_class: PodClass) -> Selector:
        if not self._reads_label_keys:
            return compile_label_selector(constraint.label_selector)
        return own_selector(constraint, pod_class.labels)

    def _from_defaults(self, pod_class: PodClass, action: str, workloads: Workloads) -> Constraints:
        selector = default_selector(pod_class, workloads)
        if selector.matches_everything:
            return ()
        return tuple(
            _compile(each, selector, pod_class)
            for each in self._defaults
            if each.when_unsatisfiable == action
        )


def own_selector(constraint: TopologySpreadConstraint, labels: dict[str, str]) -> Selector:
    """The constraint's selector with ``matchLabelKeys`` merged in.

    Keys that the pod does not have are left out. An absent selector still selects nothing.
    """
    selector = compile_label_selector(constraint.label_selector)
    return selector.with_requirements(
        Requirement(key, Operator.IN, (labels[key],))
        for key in constraint.match_label_keys
        if key in labels
    )


def default_selector(pod_class: PodClass, workloads: Workloads) -> Selector:
    """The selector of a pod's services and controller (``helper.DefaultSelector``, v1.36).

    It joins the labels of all services that select the pod and the selector of the
    ReplicationController, ReplicaSet or StatefulSet that owns it. Without any it selects
    everything.
    """
    namespace = pod_class.namespace
    labels: dict[str, str] = {}
    for selector in workloads.selecting("Service", namespace, pod_class.labels):
        labels |= selector.match_labels
    if pod_class.controller is None:
        return selector_from_labels(labels)
    kind, name = pod_class.controller
    owned = workloads.selector_of(kind, namespace, name)
    if kind == "ReplicationController":
        return selector_from_labels(labels | (owned.match_labels if owned else {}))
    return _restricted(selector_from_labels(labels), owned)


def _restricted(selector: Selector, owned: LabelSelector | None) -> Selector:
    more = NOTHING if owned is None else compile_label_selector(owned)
    return selector.with_requirements(more.requirements)


def _compile(
    constraint: TopologySpreadConstraint, selector: Selector, pod_class: PodClass
) -> SpreadConstraint:
    return SpreadConstraint(
        max_skew=constraint.max_skew,
        scope=Scope(
            constraint.topology_key,
            honors_affinity=(constraint.node_affinity_policy or HONOR) == HONOR,
            honors_taints=constraint.node_taints_policy == HONOR,
        ),
        selector=selector,
        min_domains=1 if constraint.min_domains is None else constraint.min_domains,
        matches_self=int(selector.matches(pod_class.labels)),
    )
