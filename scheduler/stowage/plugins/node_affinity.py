"""Plugin NodeAffinity: node selector, required and preferred node affinity.

NodeAffinityPriority is the priority of kube-scheduler 1.12: the same sums in whole points.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from weakref import WeakKeyDictionary

import msgspec

from stowage.api.cluster_events import ActionType, ClusterEvent, EventResource, QueueingHint
from stowage.api.config.loading import ConfigError
from stowage.api.config.types import ConfigStruct
from stowage.api.decoding.errors import SelectorError
from stowage.api.objects.node import Node, NodeSelectorTerm
from stowage.api.objects.pod import NodeAffinity as NodeAffinityRules
from stowage.api.objects.pod import PodSpec
from stowage.api.status import SKIP, SUCCESS, Status, error, unresolvable
from stowage.api.values.node_affinity import (
    NODE_NAME_FIELD,
    PreferredTerm,
    RequiredNodeAffinity,
    compile_node_selector,
    compile_preferred_terms,
)
from stowage.framework import (
    ACCEPT_ALL,
    CycleState,
    EventRegistration,
    FilterVerdict,
    NoArgs,
    PluginTraits,
    PreFilterResult,
    Reads,
    Rejection,
    default_normalize_score,
)
from stowage.framework.scores import normalize_points
from stowage.framework.verdict import Int64Array
from stowage.state.nodes.node_matching import (
    node_terms_mask,
    preferred_terms_weights,
    required_affinity_mask,
)
from stowage.state.pods.pod_class import PodClass
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import NodeView, Snapshot

REASON_POD = "node(s) didn't match Pod's node affinity/selector"
REASON_ENFORCED = "node(s) didn't match scheduler-enforced node affinity"
REASON_CONFLICT = "pod affinity terms conflict"
_SKIPPED = PreFilterResult(SKIP)
_ALL_NODES = PreFilterResult()
_NO_RULES = NodeAffinityRules()


class NodeAffinityArgs(ConfigStruct, frozen=True):
    """Arguments of NodeAffinity: node affinity that is added to that of every pod."""

    added_affinity: NodeAffinityRules | None = None

    def validate(self) -> Iterator[ConfigError]:
        """Yield an error for each invalid term."""
        if self.added_affinity is None:
            return
        required = self.added_affinity.required_during_scheduling_ignored_during_execution
        if required is not None and (problem := compile_node_selector(required).error):
            yield ConfigError(f"addedAffinity.{_REQUIRED}", required, f"valid terms; {problem}")
        preferred = self.added_affinity.preferred_during_scheduling_ignored_during_execution
        try:
            compile_preferred_terms(preferred or ())
        except SelectorError as faulty:
            yield ConfigError(f"addedAffinity.{_PREFERRED}", preferred, f"valid terms; {faulty}")


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


class _Required(msgspec.Struct, frozen=True):
    """The compiled required affinity of a class of pods.

    Attributes:
        affinity: Node selector and required affinity.
        result: The answer of PreFilter.
    """

    affinity: RequiredNodeAffinity
    result: PreFilterResult


class _Preferred(msgspec.Struct, frozen=True):
    """The compiled preferred terms of a class of pods, those of the arguments included."""

    terms: tuple[PreferredTerm, ...]


class NodeAffinity:
    """Filters by ``nodeSelector`` and required affinity, scores by preferred affinity."""

    name = "NodeAffinity"
    traits = PluginTraits(
        filter_reads=Reads.NODE,
        score_reads=Reads.NODE,
        reads_only_node_demand=True,
        rejects_per_class=True,
        skips_per_class=True,
    )

    def __init__(self, args: NodeAffinityArgs) -> None:
        added = args.added_affinity or _NO_RULES
        required = added.required_during_scheduling_ignored_during_execution
        self._added_required = compile_node_selector(required) if required else None
        preferred = added.preferred_during_scheduling_ignored_during_execution or ()
        self._adds_preferred = bool(preferred)
        self._added_preferred = compile_preferred_terms(preferred)
        self._required: WeakKeyDictionary[PodClass, _Required] = WeakKeyDictionary()
        self._preferred: WeakKeyDictionary[PodClass, _Preferred] = WeakKeyDictionary()

    def pre_filter(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult:
        """Skip without required affinity; only the named nodes if every term names nodes."""
        del snapshot
        spec = pod.spec
        if spec.affinity is None and spec.node_selector is None and self._added_required is None:
            return _SKIPPED
        required = self._required_of(pod.pod_class)
        state.write(required)
        return required.result

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> FilterVerdict:
        """Unresolvable where the added affinity, or else the pod's own, does not match.

        An invalid term matches nothing.
        """
        del pod
        matches = required_affinity_mask(nodes, state.read(_Required).affinity)
        if self._added_required is None:
            if matches.all():
                return ACCEPT_ALL
            return FilterVerdict((Rejection(REASON_POD, ~matches, unresolvable=True),))
        enforced = node_terms_mask(nodes, self._added_required)
        return FilterVerdict(
            (
                Rejection(REASON_ENFORCED, ~enforced, unresolvable=True),
                Rejection(REASON_POD, enforced & ~matches, unresolvable=True),
            )
        )

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Status:
        """Skip without preferred terms; an error if a term of the pod is invalid.

        As upstream, a pod with an empty list of terms, or only terms that add nothing (empty, or of
        weight 0), is not skipped.
        """
        del nodes
        if pod.spec.affinity is None and not self._adds_preferred:
            return SKIP
        wanted = _rules(pod.spec).preferred_during_scheduling_ignored_during_execution
        if wanted is None and not self._adds_preferred:
            return SKIP
        preferred = self._preferred.get(pod.pod_class)
        if preferred is None:
            try:
                terms = compile_preferred_terms(wanted or ())
            except SelectorError as faulty:
                return error(str(faulty))
            preferred = _Preferred((*self._added_preferred, *terms))
            self._preferred[pod.pod_class] = preferred
        state.write(preferred)
        return SUCCESS

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Int64Array:
        """``int64[len(nodes)]``: sum of the weights of the preferred terms that match."""
        del pod
        return preferred_terms_weights(nodes, state.read(_Preferred).terms)

    def normalize_score(
        self, state: CycleState, pod: PodInfo, nodes: NodeView, scores: Int64Array
    ) -> Int64Array:
        """Scale to 0..100: the highest sum gets 100 (``DefaultNormalizeScore``)."""
        del state, pod, nodes
        return default_normalize_score(scores)

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Added nodes, and changed labels of nodes."""
        event = ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)
        return (EventRegistration(event, self.after_node_change, per_demand=True),)

    def after_node_change(self, pod: PodInfo, old: Node | None, new: Node | None) -> QueueingHint:
        """``isSchedulableAfterNodeChange``: Queue if the node matches and did not match before.

        The added affinity is compared with the new node only.

        Raises:
            SelectorError: No term of the pod matches and some term is invalid.
        """
        if new is None:
            return QueueingHint.SKIP
        if self._added_required is not None and not self._added_required.matches(*_about(new)):
            return QueueingHint.SKIP
        affinity = self._required_of(pod.pod_class).affinity
        if not affinity.matches(*_about(new)):
            return QueueingHint.SKIP
        return QueueingHint.when(old is None or not affinity.matches(*_about(old)))

    def _required_of(self, pod_class: PodClass) -> _Required:
        required = self._required.get(pod_class)
        if required is None:
            required = self._required[pod_class] = self._requirements_of(pod_class)
        return required

    def _requirements_of(self, pod_class: PodClass) -> _Required:
        spec, affinity = pod_class.spec, pod_class.demand.required_affinity
        required = _rules(spec).required_during_scheduling_ignored_during_execution
        if required is None and self._added_required is None and spec.node_selector is None:
            return _Required(affinity, _SKIPPED)
        names = named_nodes(required.node_selector_terms) if required else None
        if names is None:
            return _Required(affinity, _ALL_NODES)
        if not names:
            return _Required(affinity, PreFilterResult(unresolvable(REASON_CONFLICT)))
        return _Required(affinity, PreFilterResult(SUCCESS, names))


class _Sums(msgspec.Struct, frozen=True):
    """The state of NodeAffinity as NodeAffinityPriority asks it; a profile may have both."""

    state: CycleState


class NodeAffinityPriority:
    """Scores by preferred affinity, in points of 1.12."""

    name = "NodeAffinityPriority"
    traits = PluginTraits(score_reads=Reads.NODE, reads_only_node_demand=True)

    def __init__(self, args: NoArgs) -> None:
        del args
        self._summing = NodeAffinity(NodeAffinityArgs())

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Status:
        """Skip without preferred terms; an error if a term of the pod is invalid."""
        sums = _Sums(CycleState())
        state.write(sums)
        return self._summing.pre_score(sums.state, pod, nodes)

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Int64Array:
        """``int64[len(nodes)]``: sum of the weights of the preferred terms that match."""
        return self._summing.score(state.read(_Sums).state, pod, nodes)

    def normalize_score(
        self, state: CycleState, pod: PodInfo, nodes: NodeView, scores: Int64Array
    ) -> Int64Array:
        """Scale to whole points: the highest sum gets the highest score."""
        del state, pod, nodes
        return normalize_points(scores)


def named_nodes(terms: Iterable[NodeSelectorTerm]) -> frozenset[str] | None:
    """The nodes that the terms' ``matchFields`` name; None if a term names none.

    The names are the intersection over the requirements of a term and the union over the terms;
    empty if the requirements of every term contradict each other.
    """
    names: set[str] | None = None
    for term in terms:
        allowed: frozenset[str] | None = None
        for requirement in term.match_fields:
            if requirement.key == NODE_NAME_FIELD and requirement.operator == "In":
                values = frozenset(requirement.values)
                allowed = values if allowed is None else allowed & values
        if allowed is None:
            return None
        names = set() if names is None else names
        names |= allowed  # in place: there may be thousands of terms
    return None if names is None else frozenset(names)


def _about(node: Node) -> tuple[dict[str, str], str]:
    return node.metadata.labels, node.metadata.name


def _rules(spec: PodSpec) -> NodeAffinityRules:
    affinity = spec.affinity
    return (affinity.node_affinity if affinity else None) or _NO_RULES
