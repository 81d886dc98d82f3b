"""Requests to extenders and their answers: the JSON of k8s.io/kube-scheduler/extender/v1.

Go writes these fields capitalised and reads them case-insensitively, so extenders may answer in any
case. A null counts as absent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from stowage.api.instructions import PodReference, VictimsOnNode

MAX_PRIORITY = 10
MAX_NODE_SCORE = 100
_MAX_SCORE = 2**53
"""Sums of larger scores could exceed 64 bits; in Go they overflow."""
_SHOWN_CHARACTERS = 80

T = TypeVar("T")


class InvalidAnswer(ValueError):  # noqa: N818 - as InvalidObject: it names the finding
    """An invalid answer; the text names the field, its value and what was expected."""

    def __init__(self, field_name: str, value: bytes | str, expectation: str) -> None:
        shown = value if isinstance(value, str) else value.decode("utf-8", "replace")
        if len(shown) > _SHOWN_CHARACTERS:
            shown = f"{shown[:_SHOWN_CHARACTERS]}..."
        super().__init__(f"{field_name}: {shown} (expected {expectation})")


class FilterAnswer(msgspec.Struct, frozen=True):
    """An ``ExtenderFilterResult``.

    Attributes:
        node_names: ``NodeNames``; None if absent.
        nodes: The names of ``Nodes``; None if absent.
        failed: Node -> reason.
        failed_and_unresolvable: Node -> reason, for nodes where preemption cannot help.
        error: Error of the extender; empty if there is none.
    """

    node_names: Sequence[str] | None = None
    nodes: Sequence[str] | None = None
    failed: Mapping[str, str] = msgspec.field(default_factory=dict)
    failed_and_unresolvable: Mapping[str, str] = msgspec.field(default_factory=dict)
    error: str = ""


class _Metadata(msgspec.Struct, frozen=True):
    name: str


class _NodeHead(msgspec.Struct, frozen=True):
    metadata: _Metadata


class _NodeList(msgspec.Struct, frozen=True):
    items: list[_NodeHead] | None = None


_Reasons = dict[str, str | None]
_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw] | None).decode
_decode_items = msgspec.json.Decoder(list[dict[str, msgspec.Raw] | None] | None).decode


def node_names_request(pod: bytes, node_names: Sequence[str]) -> bytes:
    """``ExtenderArgs`` for an extender with ``nodeCacheCapable``.

    Args:
        pod: The complete pod as JSON.
        node_names: Names of the nodes.
    """
    return msgspec.json.encode({"Pod": msgspec.Raw(pod), "Nodes": None, "NodeNames": node_names})


def nodes_request(pod: bytes, nodes: Sequence[bytes]) -> bytes:
    """``ExtenderArgs`` for an extender without ``nodeCacheCapable``.

    Args:
        pod: The complete pod as JSON.
        nodes: The complete nodes, each as JSON.
    """
    items = [msgspec.Raw(node) for node in nodes]
    request = {
        "Pod": msgspec.Raw(pod),
        "Nodes": {"metadata": {}, "items": items},
        "NodeNames": None,
    }
    return msgspec.json.encode(request)


def meta_victims_request(pod: bytes, candidates: Mapping[str, VictimsOnNode]) -> bytes:
    """``ExtenderPreemptionArgs`` for an extender with ``nodeCacheCapable``: victims by UID.

    Args:
        pod: The complete preemptor as JSON.
        candidates: Node name -> victims.
    """
    by_node = {
        name: {
            "Pods": [{"UID": victim.uid} for victim in each.pods],
            "NumPDBViolations": each.num_violations,
        }
        for name, each in candidates.items()
    }
    return _preemption_request(pod, None, by_node)


def victims_request(
    pod: bytes, candidates: Mapping[str, VictimsOnNode], victims: Mapping[str, bytes]
) -> bytes:
    """``ExtenderPreemptionArgs`` for an extender without ``nodeCacheCapable``: complete victims.

    Args:
        pod: The complete preemptor as JSON.
        candidates: Node name -> victims.
        victims: UID -> complete victim as JSON.
    """
    by_node = {
        name: {
            "Pods": [msgspec.Raw(victims[victim.uid]) for victim in each.pods],
            "NumPDBViolations": each.num_violations,
        }
        for name, each in candidates.items()
    }
    return _preemption_request(pod, by_node, None)


def _preemption_request(pod: bytes, victims: Any, meta_victims: Any) -> bytes:
    request = {
        "Pod": msgspec.Raw(pod),
        "NodeNameToVictims": victims,
        "NodeNameToMetaVictims": meta_victims,
    }
    return msgspec.json.encode(request)


def decode_victims(body: bytes) -> dict[str, tuple[list[str], int]]:
    """Decode an ``ExtenderPreemptionResult``: node -> (UIDs of victims, PDB violations).

    Raises:
        InvalidAnswer: the body is not JSON, or a field has another type.
    """
    fields = _fields(body, "an ExtenderPreemptionResult")
    kind = dict[str, dict[str, msgspec.Raw] | None] | None
    by_node = _read(fields, "NodeNameToMetaVictims", kind, "victims by node name") or {}
    victims = {}
    for name, each in by_node.items():
        of_node = _folded(each or {})
        pods = _read(of_node, "Pods", list[dict[str, msgspec.Raw] | None] | None, "a list") or []
        uids = [_read(_folded(pod or {}), "UID", str | None, "a UID") or "" for pod in pods]
        number = _read(of_node, "NumPDBViolations", int | None, "a whole number") or 0
        victims[name] = (uids, number)
    return victims


def binding_request(pod: PodReference, node_name: str) -> bytes:
    """``ExtenderBindingArgs``."""
    return msgspec.json.encode(
        {
            "PodName": pod.name,
            "PodNamespace": pod.namespace,
            "PodUID": pod.uid,
            "Node": node_name,
        }
    )


def decode_filter_answer(body: bytes) -> FilterAnswer:
    """Decode an ``ExtenderFilterResult``.

    Raises:
        InvalidAnswer: the body is not JSON, or a field has another type.
    """
    fields = _fields(body, "an ExtenderFilterResult")
    nodes = _read(fields, "Nodes", _NodeList | None, "a v1.NodeList")
    return FilterAnswer(
        node_names=_read(fields, "NodeNames", list[str] | None, "a list of node names"),
        nodes=None if nodes is None else [node.metadata.name for node in nodes.items or ()],
        failed=_reasons(fields, "FailedNodes"),
        failed_and_unresolvable=_reasons(fields, "FailedAndUnresolvableNodes"),
        error=_read(fields, "Error", str | None, "a text") or "",
    )


def decode_scores(body: bytes, weight: int) -> list[tuple[str, int]]:
    """Decode a ``HostPriorityList``: (node, weighted score on the scheduler's scale).

    The score is ``score * weight * (MaxNodeScore / MaxExtenderPriority)``, as in
    ``prioritizeNodes`` of v1.36. A node may be listed twice; its scores are added up.

    Args:
        body: The answer.
        weight: Weight of the extender.

    Raises:
        InvalidAnswer: the body is not JSON, or a field has another type.
    """
    try:
        items = _decode_items(body) or ()
    except msgspec.DecodeError as error:
        raise InvalidAnswer("$", body, f"a HostPriorityList; {error}") from error
    scores = []
    for item in items:
        fields = _folded(item or {})
        host = _read(fields, "Host", str | None, "a node name") or ""
        score = _read(fields, "Score", int | None, "a whole number") or 0
        weighted = score * weight * (MAX_NODE_SCORE // MAX_PRIORITY)
        if abs(weighted) > _MAX_SCORE:
            raise InvalidAnswer(f"Score of {host}", str(score), f"0 to {MAX_PRIORITY}")
        scores.append((host, weighted))
    return scores


def decode_binding_error(body: bytes) -> str:
    """The ``Error`` of an ``ExtenderBindingResult``; empty if the pod was bound.

    Raises:
        InvalidAnswer: the body is not JSON, or a field has another type.
    """
    fields = _fields(body, "an ExtenderBindingResult")
    return _read(fields, "Error", str | None, "a text") or ""


def _fields(body: bytes, expectation: str) -> dict[str, msgspec.Raw]:
    try:
        return _folded(_decode_fields(body) or {})
    except msgspec.DecodeError as error:
        raise InvalidAnswer("$", body, f"{expectation}; {error}") from error


def _folded(fields: Mapping[str, msgspec.Raw]) -> dict[str, msgspec.Raw]:
    return {name.casefold(): value for name, value in fields.items()}


def _reasons(fields: Mapping[str, msgspec.Raw], name: str) -> dict[str, str]:
    reasons = _read(fields, name, _Reasons | None, "a reason by node name") or {}
    return {node: reason or "" for node, reason in reasons.items()}


def _read(fields: Mapping[str, msgspec.Raw], name: str, kind: Any, expectation: str) -> Any:
    raw = fields.get(name.casefold())
    if raw is None:
        return None
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.DecodeError as error:
        raise InvalidAnswer(name, bytes(raw), expectation) from error
