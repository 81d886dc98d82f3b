"""Memory: what the cluster looks like now, in the shape in which it is asked about.

Purpose. Scheduling asks few kinds of question of all nodes at once: how much is free, which labels
and taints are there, how many pods of this sort are where. The state keeps the answers as columns
(a row is a node), so that a question is one numpy expression.

Theory of operation. `ClusterCache` is told what happened to nodes, pods and namespaces and keeps
the columns equal to the objects. `make_pod_info` reduces a pod to its identity and its
`PodClass`, which all pods of one template share. `Snapshot` is a read-only face of the live
columns and costs nothing to make; `NodeView` is some of its rows. Strings become codes: a
requirement or toleration is judged once per distinct value, then looked up per node. `PodIndex`
counts pods by selector and keeps the counts right as pods come and go. What would be is asked in
two ways: a what-if `Snapshot` is one cluster with some pods more or less, a `RowWhatIf` as many
clusters as it has rows, each changed in one of them.

Storage. Claims, volumes and what belongs to them are objects with look-ups (`storage`), claims and
volumes with what is assumed about them (`assume_cache`). What pods and attachments take of them on
each node is counted as they come and go (`volume_use`), what drivers say about nodes are columns
(`csi_nodes`).

Invariants.
- Only the cache writes, except that Reserve and Unreserve of VolumeBinding assume and restore.
  What is handed out is read-only memory that stays live; whoever needs it beyond the cycle
  remembers the generations of `node_changes` and `usage_changes` and reads the rows that changed
  since.
- No event and no cycle costs time in proportion to nodes or pods. Exceptions are amortised: the
  first question about a label key or a selector, and arrays that grow.
- Row numbers and codes never leave the scheduler; names do. Both are reused.
- `validate()` recounts everything from the objects and must agree, after any order of events.

Who may call it. Everybody above reads snapshots and pod infos; only the engine holds the cache.

Rejected. Objects per node, as kube-scheduler has: the loop over them is the cost to avoid.
Copy-on-write snapshots: nothing runs between taking one and using it, so the copy protects
nobody. Floating point anywhere: sums must be exact.
"""

from stowage.state.cache import ClusterCache, InvariantViolation
from stowage.state.changes import NodeChange, PodChange, node_update_actions, pod_update_actions
from stowage.state.nodes.node_matching import (
    node_term_mask,
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
    "node_term_mask",
    "node_terms_mask",
    "node_update_actions",
    "pod_update_actions",
    "required_affinity_mask",
    "requirement_mask",
    "selector_mask",
    "tolerated_taint_sets",
    "untolerated_taint_counts",
]
