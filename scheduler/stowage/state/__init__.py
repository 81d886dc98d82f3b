"""The state of the cluster: what plugins read of all nodes, as columns.

Purpose. A plugin asks few kinds of questions, each of all nodes: how much is free, which labels and
taints are there, how many pods match a selector where. The state keeps the values as arrays over
rows (a row is a node), so that a plugin answers with one numpy expression.

Structure. `ClusterCache` receives nodes, pods, namespaces, workloads, budgets and storage objects,
and keeps `ClusterState` equal to them. `make_pod_info` reduces a pod to its identity and its
`PodClass`, which the pods of a template share. A `Snapshot` is a read-only face of the live state
and costs nothing to create; a `NodeView` is some of its rows. Strings are interned: a requirement
or toleration is evaluated once per distinct value, and each node looks up the result by its code.
The sub-packages: `nodes` (columns), `pods` (classes, counts, terms), `storage` (claims, volumes),
`what_if` (the cluster with other pods).

Invariants.

- Only the cache writes. Readers get read-only views of live memory. A reader that needs values
  beyond a cycle remembers the generations of `node_changes` and `usage_changes`, and reads the rows
  that changed since.
- No event and no cycle costs time in proportion to nodes or pods, except amortised: the first
  request of a label key or selector, and growing arrays.
- Row numbers and codes are reused, and never leave the scheduler; names do.
- `ClusterCache.validate` recounts everything from the objects and must agree after any order of
  events.

Callers. All packages above read snapshots and pod infos. Only the engine holds the cache.

Rejected designs. An object per node, like ``NodeInfo`` of kube-scheduler: plugins would loop over
nodes. Copy-on-write snapshots: no event is handled between taking and using a snapshot, so a copy
protects nothing. Floating point: sums must be exact.
"""

from stowage.state.cache import ClusterCache, InvariantViolation
from stowage.state.changes import NodeChange, PodChange, node_update_actions, pod_update_actions
from stowage.state.nodes.node_matching import (
    node_terms_mask,
    required_affinity_mask,
    requirement_mask,
    selector_mask,
    tolerated_taint_sets,
    untolerated_taint_counts,
)
from stowage.state.nodes.resource_index import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, ResourceIndex
from stowage.state.pods.affinity_terms import AffinityTerm, TermKind
from stowage.state.pods.pod_class import PodClass, PodClasses
from stowage.state.pods.pod_counts import PodCounts
from stowage.state.pods.pod_index import ExistingTerm, PodIndex
from stowage.state.pods.pod_info import PodInfo, make_pod_info
from stowage.state.snapshot import NodeView, Snapshot

__all__ = [
    "CPU",
    "EPHEMERAL_STORAGE",
    "MEMORY",
    "PODS",
    "AffinityTerm",
    "ClusterCache",
    "ExistingTerm",
    "InvariantViolation",
    "NodeChange",
    "NodeView",
    "PodChange",
    "PodClass",
    "PodClasses",
    "PodCounts",
    "PodIndex",
    "PodInfo",
    "ResourceIndex",
    "Snapshot",
    "TermKind",
    "make_pod_info",
    "node_terms_mask",
    "node_update_actions",
    "pod_update_actions",
    "required_affinity_mask",
    "requirement_mask",
    "selector_mask",
    "tolerated_taint_sets",
    "untolerated_taint_counts",
]
