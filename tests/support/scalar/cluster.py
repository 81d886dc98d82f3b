"""A cluster as plain lists, for the scalar twins, which look at one node and one pod at a time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from stowage.api.objects.meta import LabelSelector
from stowage.api.objects.node import Node
from stowage.api.objects.pod import Pod
from stowage.api.objects.volume import StorageObject

S = TypeVar("S", bound=StorageObject)


@dataclass
class PlainCluster:
    """The objects that the twins read.

    Attributes:
        nodes: By name.
        pods: Placed pods by UID, with ``spec.node_name`` set.
        namespaces: Labels by namespace; a namespace may be missing though pods name it.
        workloads: Selectors by (kind, namespace, name); plain selectors are written as
            ``LabelSelector(match_labels=...)``, and None is an absent one.
        storage: Claims, volumes, classes and so on by (kind, ``namespace/name`` or name).
    """

    nodes: dict[str, Node] = field(default_factory=dict)
    pods: dict[str, Pod] = field(default_factory=dict)
    namespaces: dict[str, dict[str, str]] = field(default_factory=dict)
    workloads: dict[tuple[str, str, str], LabelSelector | None] = field(default_factory=dict)
    storage: dict[tuple[type[Any], str], StorageObject] = field(default_factory=dict)

    def stored(self, kind: type[S], key: str) -> S | None:
        """The storage object of that kind and name."""
        return cast("S | None", self.storage.get((kind, key)))

    def all_stored(self, kind: type[S]) -> list[S]:
        """All storage objects of a kind."""
        return [each for each in self.storage.values() if isinstance(each, kind)]

    def pods_on(self, node: Node) -> list[Pod]:
        """The placed pods of one node."""
        return [pod for pod in self.pods.values() if pod.spec.node_name == node.metadata.name]

    def placed(self) -> list[tuple[Pod, Node]]:
        """Every placed pod whose node exists, with that node."""
        return [
            (pod, self.nodes[pod.spec.node_name])
            for pod in self.pods.values()
            if pod.spec.node_name in self.nodes
        ]
