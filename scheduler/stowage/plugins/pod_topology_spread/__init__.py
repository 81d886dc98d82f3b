"""PodTopologySpread: the pods of a workload evenly over zones, nodes or any other node label.

Matching pods are counted by the pod index as they come and go. What is left for a cycle is a
comparison per domain and one table lookup over the nodes, per constraint. Which nodes count at
all (topology keys, node affinity, taints) changes only with node objects: the answer is kept for
all pods that ask the same and renewed for the rows that changed.

Invariants:

- A node counts for a hard constraint only if it has the topology keys of all hard constraints of
  the pod; for a soft one likewise among the soft ones, except under the built-in defaults.
- Terminating pods and pods of other namespaces never count. An empty selector counts nothing,
  yet matches the pod itself.
- Hostnames are domains in Filter; in Score each node is rated by its own pods only.
- Filter and Score answer for the snapshot of the nodes they are given, what-if or not.

Rejected: upstream's two "critical paths" per constraint, which serve its way of trying out
preemption; here the lowest count is taken anew from the domains. Adding or removing a terminating
pod in a what-if snapshot therefore changes nothing, whereas upstream counts it then.
"""

from stowage.plugins.pod_topology_spread.args import DefaultConstraint, PodTopologySpreadArgs
from stowage.plugins.pod_topology_spread.plugin import PodTopologySpread

__all__ = ["DefaultConstraint", "PodTopologySpread", "PodTopologySpreadArgs"]
