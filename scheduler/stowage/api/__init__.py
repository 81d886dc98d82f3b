"""The API types: Kubernetes objects, and the engine's events, instructions and statuses.

Purpose. Objects of the Kubernetes API are decoded once, from bytes, into frozen structs that hold
only the fields that scheduling reads. Value types give these fields the exact semantics of
kube-scheduler: quantities, selectors, node affinity, tolerations, resources.

Sub-packages: `objects` (structs), `values` (value types), `decoding` (bytes to structs), `config`
(KubeSchedulerConfiguration), `instructions` (outputs of the engine). Modules: `events` (its
inputs), `cluster_events` (what plugins register for), `status` (results of plugins),
`reflected_kinds` (the kinds that are listed and watched, and their events), `decisions` (records of
attempts), `interruptible` (work that is done in short steps).

Invariants.

- Everything is immutable and free of I/O, clocks and randomness. All other packages may import
  this one; it imports none of them.
- Structs hold what was sent. Defaults are those of absent fields in Go (empty, zero, None), not
  those of admission. Quantities and timestamps stay text until they are read.
- Compiled values (`Requirement`, `Selector`, `NodeTerm`, ...) are hashable and canonical: selectors
  with the same operators and meaning are equal, so they can be interned.
- Quantities are never floats. Input that cannot be used raises `InvalidObject`, which names object,
  field, value and expectation.

Rejected designs. The generated models of the Kubernetes client: decoding is two hundred times
slower. ``| None`` for every list and map: nulls are dropped on a second, slow path instead.
Dataclasses with hand-written decoding. Repeating the validation of the API server.
"""

from stowage.api.decoding.decode import (
    KINDS,
    ObjectList,
    WatchError,
    WatchEvent,
    convert_object,
    decode_list,
    decode_object,
    decode_pod,
    decode_watch_event,
)
from stowage.api.decoding.errors import InvalidObject, QuantityError, SelectorError
from stowage.api.objects.meta import LabelSelector, ObjectMeta, controller_of
from stowage.api.objects.namespace import Namespace
from stowage.api.objects.node import Node, NodeSelector, Taint
from stowage.api.objects.pod import Container, Pod, PodSpec, Toleration
from stowage.api.values.node_affinity import (
    NodeTerm,
    NodeTerms,
    PreferredTerm,
    RequiredNodeAffinity,
    compile_node_selector,
    compile_preferred_terms,
    required_node_affinity,
)
from stowage.api.values.quantity import (
    Quantity,
    parse_quantity,
    quantity_milli_value,
    quantity_value,
)
from stowage.api.values.resources import (
    PodUsage,
    node_allocatable,
    pod_limits,
    pod_requests,
    pod_usage,
)
from stowage.api.values.selector_syntax import (
    FieldSelector,
    parse_field_selector,
    parse_label_selector,
)
from stowage.api.values.selectors import (
    EVERYTHING,
    NOTHING,
    Operator,
    Requirement,
    Selector,
    compile_label_selector,
    selector_from_labels,
)
from stowage.api.values.tolerations import first_untolerated_taint, tolerated, tolerates

__all__ = [
    "EVERYTHING",
    "KINDS",
    "NOTHING",
    "Container",
    "FieldSelector",
    "InvalidObject",
    "LabelSelector",
    "Namespace",
    "Node",
    "NodeSelector",
    "NodeTerm",
    "NodeTerms",
    "ObjectList",
    "ObjectMeta",
    "Operator",
    "Pod",
    "PodSpec",
    "PodUsage",
    "PreferredTerm",
    "Quantity",
    "QuantityError",
    "RequiredNodeAffinity",
    "Requirement",
    "Selector",
    "SelectorError",
    "Taint",
    "Toleration",
    "WatchError",
    "WatchEvent",
    "compile_label_selector",
    "compile_node_selector",
    "compile_preferred_terms",
    "controller_of",
    "convert_object",
    "decode_list",
    "decode_object",
    "decode_pod",
    "decode_watch_event",
    "first_untolerated_taint",
    "node_allocatable",
    "parse_field_selector",
    "parse_label_selector",
    "parse_quantity",
    "pod_limits",
    "pod_requests",
    "pod_usage",
    "quantity_milli_value",
    "quantity_value",
    "required_node_affinity",
    "selector_from_labels",
    "tolerated",
    "tolerates",
]
