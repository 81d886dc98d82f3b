"""Nodes, and node selectors of pods and volumes."""

import msgspec

from stowage.api.objects.meta import ApiStruct, Condition, Int64, ObjectMeta, Quantities


class NodeSelectorRequirement(ApiStruct, frozen=True):
    """One expression; operators In, NotIn, Exists, DoesNotExist, Gt, Lt."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class NodeSelectorTerm(ApiStruct, frozen=True):
    """Expressions that must all hold; a term without any matches nothing."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(ApiStruct, frozen=True):
    """Terms of which one must match."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class Taint(ApiStruct, frozen=True):
    """A taint of a node; tolerations do not read ``time_added``."""

    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str | None = None


class NodeSpec(ApiStruct, frozen=True):
    """NodeSpec."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class ContainerImage(ApiStruct, frozen=True):
    """An image present on a node, by all its names."""

    names: tuple[str, ...] = ()
    size_bytes: Int64 = 0


class NodeStatus(ApiStruct, frozen=True):
    """NodeStatus."""

    allocatable: Quantities = msgspec.field(default_factory=dict)
    capacity: Quantities = msgspec.field(default_factory=dict)
    images: tuple[ContainerImage, ...] = ()
    conditions: tuple[Condition, ...] = ()
    declared_features: tuple[str, ...] = ()


class Node(ApiStruct, frozen=True):
    """A node."""

    metadata: ObjectMeta = ObjectMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()
