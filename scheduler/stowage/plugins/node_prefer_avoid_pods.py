"""Plugin NodePreferAvoidPods: a node's annotation lists controllers whose pods it should not get.

A priority of kube-scheduler 1.12, whose default weight of 10000 exceeds any sum of other scores.
The annotation is ``scheduler.alpha.kubernetes.io/preferAvoidPods``.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec
import numpy as np

from stowage.api.objects.meta import ApiStruct
from stowage.api.objects.node import Node
from stowage.framework import CycleState, NoArgs, PluginTraits, Reads
from stowage.framework.scores import MAX_NODE_SCORE
from stowage.framework.verdict import Int64Array
from stowage.state.change_log import ChangeLog
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import NodeView, Snapshot

ANNOTATION = "scheduler.alpha.kubernetes.io/preferAvoidPods"
_AVOIDABLE_KINDS = frozenset(("ReplicationController", "ReplicaSet"))

Controller: TypeAlias = tuple[str, str]
"""(kind, UID)."""


class _PodController(ApiStruct, frozen=True):
    kind: str | None = None
    uid: str | None = None


class _PodSignature(ApiStruct, frozen=True):
    pod_controller: _PodController | None = None


class _PreferAvoidPodsEntry(ApiStruct, frozen=True):
    pod_signature: _PodSignature | None = None


class _AvoidPods(ApiStruct, frozen=True):
    """The fields of ``v1.AvoidPods`` that are read; null means absent, as in Go."""

    prefer_avoid_pods: tuple[_PreferAvoidPodsEntry | None, ...] | None = None


_decode_avoid_pods = msgspec.json.Decoder(_AvoidPods | None).decode
_NOBODY: frozenset[Controller] = frozenset()


class NodePreferAvoidPods:
    """Scores nodes whose annotation lists the pod's controller low."""

    name = "NodePreferAvoidPods"
    traits = PluginTraits(score_reads=Reads.NODE)

    def __init__(self, args: NoArgs) -> None:
        del args
        self._requests = AvoidanceRequests()

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Int64Array:
        """``int64[len(nodes)]``: 0 where the annotation lists the pod's controller, else 100.

        ``CalculateNodePreferAvoidPodsPriorityMap`` of 1.12 gives 0 and 10 points; they are scaled
        to 0..100 so that weights keep their proportion. Only a ReplicationController or a
        ReplicaSet can be listed.
        """
        del state
        scores = np.full(len(nodes), MAX_NODE_SCORE, dtype=np.int64)
        pod_class = pod.pod_class
        if pod_class.controller is None or pod_class.controller[0] not in _AVOIDABLE_KINDS:
            return scores
        snapshot = nodes.snapshot
        controller = (pod_class.controller[0], pod_class.controller_uid)
        rows = self._requests.rows_avoiding(controller, snapshot)
        if rows:
            avoided = np.zeros(snapshot.num_rows, dtype=np.bool_)
            avoided[list(rows)] = True
            scores[nodes.take(avoided)] = 0
        return scores


class AvoidanceRequests:
    """Index from controllers to the rows whose annotation lists them.

    It reads the annotations of changed nodes only. A snapshot of another cluster resets it.
    """

    __slots__ = ("_by_row", "_generation", "_log", "_rows")

    def __init__(self) -> None:
        self._log: ChangeLog | None = None
        self._generation = 0
        self._by_row: dict[int, frozenset[Controller]] = {}
        self._rows: dict[Controller, set[int]] = {}

    def rows_avoiding(self, controller: Controller, snapshot: Snapshot) -> frozenset[int]:
        """The rows whose annotation lists `controller`."""
        self._catch_up(snapshot)
        return frozenset(self._rows.get(controller, ()))

    def _catch_up(self, snapshot: Snapshot) -> None:
        log = snapshot.node_changes
        same_cluster = log is self._log
        if same_cluster and log.generation == self._generation:
            return
        changed = log.since(self._generation) if same_cluster else None
        if changed is None:
            self._by_row.clear()
            self._rows.clear()
            changed = snapshot.all_rows
        for row in changed.tolist():
            node = snapshot.node(row)
            self._replace(row, _NOBODY if node is None else avoided_controllers(node))
        self._log, self._generation = log, log.generation

    def _replace(self, row: int, avoided: frozenset[Controller]) -> None:
        before = self._by_row.pop(row, _NOBODY)
        for controller in before - avoided:
            rows = self._rows[controller]
            rows.remove(row)
            if not rows:
                del self._rows[controller]
        for controller in avoided - before:
            self._rows.setdefault(controller, set()).add(row)
        if avoided:
            self._by_row[row] = avoided


def avoided_controllers(node: Node) -> frozenset[Controller]:
    """The controllers that a node's annotation lists.

    An annotation that cannot be decoded lists none, as in kube-scheduler
    (``GetAvoidPodsFromNodeAnnotations`` and its caller).
    """
    annotation = node.metadata.annotations.get(ANNOTATION)
    if not annotation:
        return _NOBODY
    try:
        decoded = _decode_avoid_pods(annotation)
    except (msgspec.DecodeError, RecursionError):
        return _NOBODY
    entries = decoded.prefer_avoid_pods if decoded else None
    controllers = (
        entry.pod_signature.pod_controller if entry and entry.pod_signature else None
        for entry in entries or ()
    )
    return frozenset((each.kind or "", each.uid or "") for each in controllers if each is not None)
