"""WORDS: what the API server says, what the engine hears and what it answers.

Objects of the Kubernetes API are decoded once, from bytes, into frozen msgspec structs that hold
only what scheduling reads (`decode`). Beside them stand the value types that give those words their
meaning, with kube-scheduler's semantics to the last digit: quantities (`quantity`), label selectors
(`selectors`, `selector_syntax`), node affinity (`node_affinity`), tolerations (`tolerations`) and
the resources of pods and nodes (`resources`). The engine's own words are its inputs (`events`), its
outputs (`instructions`) and the plugins' verdicts (`status`).

Invariants:
    - Everything here is immutable and free of I/O, clocks and randomness; any room may use it and
      it uses none of them.
    - Structs say what was sent. Defaults are those of absent fields in Go (empty, zero, None);
      admission's defaults are not repeated. Quantities and timestamps stay text until asked for.
    - Compiled values (`Requirement`, `Selector`, `NodeTerm`, ...) are hashable and canonical: equal
      meaning written in the same operators is equal, so they can be interned.
    - No float touches a quantity. Input that cannot be used raises `InvalidObject`, naming object,
      field, value and expectation.

Rejected: the generated models of the Kubernetes client (two hundred times slower to decode),
``| None`` on every list and map (nulls are dropped on a second, slow path instead), dataclasses
with hand-written decoding, and validation of everything the API server has validated already.
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
    preferred_terms_score,
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
    "preferred_terms_score",
    "quantity_milli_value",
    "quantity_value",
    "required_node_affinity",
    "selector_from_labels",
    "tolerated",
    "tolerates",
]
