"""The objects of a cluster, decoded, and the events that show them to the engine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

import msgspec

from stowage.analysis.pods_by_node import PodsByNode, is_finished
from stowage.api.decoding.decode import KINDS, convert_object
from stowage.api.decoding.errors import InvalidObject
from stowage.api.events import AssignedPodSeen, Event, PendingPodSeen, PodGroupsServed
from stowage.api.objects.meta import ApiStruct
from stowage.api.objects.pod import Pod
from stowage.api.objects.pod_groups import (
    CORE_GROUPS,
    COSCHEDULING_GROUPS,
    CoschedulingPodGroup,
    PodGroup,
)
from stowage.api.reflected_kinds import POD_GROUP_SOURCES, REFLECTED_KINDS

ObjectT = TypeVar("ObjectT", bound=ApiStruct)

POD = "Pod"
_SEEN = {
    kind.kind: kind.seen for kind in (*REFLECTED_KINDS, *POD_GROUP_SOURCES) if kind.kind != POD
}
_POD_GROUPS: Mapping[str, type[ApiStruct]] = {
    CORE_GROUPS: PodGroup,
    COSCHEDULING_GROUPS: CoschedulingPodGroup,
}


def struct_of(item: Mapping[str, Any]) -> type[ApiStruct] | None:
    """The struct of a plain object; None if scheduling does not read its kind."""
    kind = str(item.get("kind", ""))
    if kind == PodGroup.__name__:  # several API groups have such a kind
        return _POD_GROUPS.get(str(item.get("apiVersion", "")).partition("/")[0])
    return KINDS.get(kind)


class ClusterObjects(msgspec.Struct):
    """The objects that scheduling reads.

    Attributes:
        by_kind: Kind -> ``namespace/name``, or the name -> object; changed by `add` and `remove`.
        invalid: The objects that could not be decoded; they are left out.
        unserved_groups: The sources of pod groups that the API server is known not to serve: pods
            that name a group of theirs are ordinary pods.
    """

    by_kind: dict[str, dict[str, ApiStruct]] = msgspec.field(default_factory=dict)
    invalid: list[InvalidObject] = msgspec.field(default_factory=list)
    unserved_groups: set[str] = msgspec.field(default_factory=set)
    _pods_by_node: PodsByNode | None = None

    @classmethod
    def of(cls, items: Iterable[Mapping[str, Any]]) -> ClusterObjects:
        """Decode plain objects with a ``kind``; kinds that scheduling does not read are left out.

        Of two objects with one name the later counts.
        """
        objects = cls()
        for item in items:
            kind = struct_of(item)
            if kind is None:
                continue
            try:
                objects.add(convert_object(kind, item))
            except InvalidObject as invalid:
                objects.invalid.append(invalid)
        return objects

    def add(self, obj: ApiStruct) -> None:
        """Add an object, or replace the one with its name."""
        key = obj.metadata.namespaced_name  # type: ignore[attr-defined]  # every kind has metadata
        known = self.by_kind.setdefault(type(obj).__name__, {})
        if isinstance(obj, Pod) and self._pods_by_node is not None:
            self._pods_by_node.replace(key, self.pod(key), obj)
        known[key] = obj

    def remove(self, kind: str, key: str) -> ApiStruct | None:
        """Remove the object of a kind with this ``namespace/name``, or name; None if unknown."""
        gone = self.by_kind.get(kind, {}).pop(key, None)
        if isinstance(gone, Pod) and self._pods_by_node is not None:
            self._pods_by_node.replace(key, gone, None)
        return gone

    def find(self, kind: type[ObjectT], key: str) -> ObjectT | None:
        """The object of a kind with this ``namespace/name``, or name."""
        return self.by_kind.get(kind.__name__, {}).get(key)  # type: ignore[return-value]  # as `add` keeps it

    def of_kind(self, kind: type[ObjectT]) -> list[ObjectT]:
        """All objects of a kind."""
        return list(self.by_kind.get(kind.__name__, {}).values())  # type: ignore[arg-type]  # as `add` keeps it

    def counts(self) -> dict[str, int]:
        """Kind -> number of objects."""
        return {kind: len(found) for kind, found in self.by_kind.items()}

    def pods(self) -> list[Pod]:
        """All pods, finished ones included."""
        return self.of_kind(Pod)

    def pod(self, key: str) -> Pod | None:
        """The pod ``namespace/name``."""
        return self.find(Pod, key)

    def pods_by_node(self) -> PodsByNode:
        """The pods that have not finished by node; made by the first call, and then kept true."""
        if self._pods_by_node is None:
            self._pods_by_node = PodsByNode(self.pods())
        return self._pods_by_node

    def events(self) -> Iterator[Event]:
        """The events of a first list: everything that pods depend on, then the pods."""
        for source in sorted(self.unserved_groups):
            yield PodGroupsServed(source, is_served=False)
        for kind, seen in _SEEN.items():
            for obj in self.by_kind.get(kind, {}).values():
                yield seen(obj)  # type: ignore[arg-type]  # as `add` keeps it
        pods = [pod for pod in self.pods() if not is_finished(pod)]
        yield from (AssignedPodSeen(pod) for pod in pods if pod.spec.node_name)
        yield from (PendingPodSeen(pod) for pod in pods if not pod.spec.node_name)
