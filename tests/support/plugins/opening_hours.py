"""A plugin that waits for objects of a kind of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stowage.framework.authoring import (
    ActionType,
    ClusterEvent,
    CycleState,
    EventRegistration,
    PluginTraits,
    PodInfo,
    PreFilterResult,
    QueueingHint,
    Snapshot,
    unresolvable,
)

HARBOURS = "harbours.v1.example.com"


class OpeningHours:
    """Lets pods pass while the harbour that their label names is open.

    Attributes:
        hinted: The spec of the object before and after, for every call of the hint.
    """

    name = "OpeningHours"
    traits = PluginTraits()

    def __init__(self) -> None:
        self.hinted: list[tuple[Any, Any]] = []

    def pre_filter(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult:
        harbour = snapshot.custom_objects.of(HARBOURS).get(_harbour_of(pod))
        if _is_open(harbour):
            return PreFilterResult()
        return PreFilterResult(unresolvable(f"harbour {_harbour_of(pod)} is closed"))

    def events_to_register(self) -> Sequence[EventRegistration]:
        event = ClusterEvent(HARBOURS, ActionType.ADD | ActionType.UPDATE)
        return (EventRegistration(event, self._opens),)

    def _opens(
        self, pod: PodInfo, old: Mapping[str, Any] | None, new: Mapping[str, Any] | None
    ) -> QueueingHint:
        self.hinted.append((old and old["spec"], new and new["spec"]))
        assert new is not None
        is_mine = f"{pod.namespace}/{new['metadata']['name']}" == _harbour_of(pod)
        return QueueingHint.when(is_mine and _is_open(new) and not _is_open(old))


def _harbour_of(pod: PodInfo) -> str:
    return f"{pod.namespace}/{pod.labels.get('harbour', '')}"


def _is_open(harbour: Mapping[str, Any] | None) -> bool:
    return harbour is not None and bool(harbour["spec"]["open"])
