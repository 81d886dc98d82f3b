"""Near misses of node selectors: what a pod asks of labels, and what the nodes have instead."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches

from stowage.analysis.explanation import NearMiss, NodeVerdict
from stowage.api.objects.node import Node
from stowage.api.values.node_affinity import RequiredNodeAffinity, required_node_affinity
from stowage.api.values.selectors import Operator, Requirement
from stowage.plugins.node_affinity import REASON_POD, NodeAffinity
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import Snapshot

_FEW_VALUES = 3
_SIMILAR = 0.8


def selector_misses(
    snapshot: Snapshot, pod: PodInfo, verdicts: Sequence[NodeVerdict]
) -> tuple[list[NearMiss], list[NodeVerdict]]:
    """The requirements of labels that a pod should not have, and the nodes that lack others.

    Args:
        snapshot: The cluster.
        pod: The pod.
        verdicts: The nodes that NodeAffinity alone rejects.

    Returns:
        A near miss for each set of failing requirements, and the verdicts for which there is none:
        the affinity has several terms, names a field, or is that of the profile.
    """
    required = required_node_affinity(pod.spec)
    others: list[NodeVerdict] = []
    groups: defaultdict[tuple[Requirement, ...], list[Node]] = defaultdict(list)
    for verdict in verdicts:
        row = snapshot.row_of(verdict.node)
        node = None if row is None else snapshot.node(row)
        failing = () if node is None else _failing(required, node)
        is_of_pod = verdict.rejected_by is not None and verdict.rejected_by.reasons == (REASON_POD,)
        if node is None or not failing or not is_of_pod:
            others.append(verdict)
        else:
            groups[failing].append(node)
    return [_miss(failing, nodes) for failing, nodes in groups.items()], others


def _failing(required: RequiredNodeAffinity, node: Node) -> tuple[Requirement, ...]:
    """The requirements that the node does not meet; empty if more than labels is asked for."""
    labels = node.metadata.labels
    asked = [] if required.node_selector is None else [*required.node_selector.requirements]
    if required.terms is not None:
        if len(required.terms.terms) != 1 or required.terms.error:
            return ()
        (term,) = required.terms.terms
        if not term.matches_name(node.metadata.name):
            return ()
        asked += term.labels
    return tuple(
        dict.fromkeys(each for each in asked if not each.matches_value(labels.get(each.key)))
    )


def _miss(failing: tuple[Requirement, ...], nodes: Sequence[Node]) -> NearMiss:
    asked = " and ".join(map(_text, failing))
    have = "it has" if len(nodes) == 1 else "they have"
    found = ", ".join(_found(failing, [each.metadata.labels for each in nodes]))
    return NearMiss(
        f"it did not ask for {asked} ({have} {found})",
        NodeAffinity.name,
        tuple(each.metadata.name for each in nodes),
        float(len(failing)),
    )


def _text(requirement: Requirement) -> str:
    """The requirement as in a label selector of kubectl."""
    sign = {Operator.IN: "=", Operator.NOT_IN: "!="}.get(requirement.operator, "")
    if sign and len(requirement.values) == 1:
        return f"{requirement.key}{sign}{requirement.values[0]}"
    return str(requirement)


def _found(failing: Iterable[Requirement], labels: Sequence[Mapping[str, str]]) -> Iterator[str]:
    """What the nodes have of each key, or else of a similar one."""
    for key in dict.fromkeys(each.key for each in failing):
        if any(key in each for each in labels):
            yield _values(key, labels)
            continue
        known = sorted({name for each in labels for name in each})
        similar = get_close_matches(key, known, n=1, cutoff=_SIMILAR)
        yield f"no {key}" + (f", but {_values(similar[0], labels)}" if similar else "")


def _values(key: str, labels: Sequence[Mapping[str, str]]) -> str:
    values = sorted({each[key] for each in labels if key in each})
    more = ", ..." if len(values) > _FEW_VALUES else ""
    none = "" if all(key in each for each in labels) else " or none"
    return f"{key}={', '.join(values[:_FEW_VALUES])}{more}{none}"
