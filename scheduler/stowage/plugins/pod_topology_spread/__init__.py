"""Plugin PodTopologySpread: spreads the pods of a workload over the values of a node label.

The pod index counts matching pods as pods are added and removed. A cycle costs a comparison per
domain and one table lookup over the nodes, per constraint. Which nodes are eligible (topology keys,
node affinity, taints) changes only with node objects: that is kept for all pods with the same
constraints, and updated for the rows that changed.

Invariants:

- A node counts for a hard constraint only if it has the topology keys of all hard constraints of
  the pod; for a soft one likewise among the soft ones, except under the built-in defaults.
- Terminating pods and pods of other namespaces never count. An empty selector counts nothing,
  yet matches the pod itself.
- Hostnames are domains in Filter; in Score each node is rated by its own pods only.
- Filter and Score answer for the snapshot of the nodes they are given, what-if or not.

Rejected: upstream's two "critical paths" per constraint, which serve its incremental preemption
dry run; here the lowest count is computed from the domains. Adding or removing a terminating pod in
a what-if snapshot therefore changes no count, whereas upstream counts it.
"""

from stowage.plugins.pod_topology_spread.args import DefaultConstraint, PodTopologySpreadArgs
from stowage.plugins.pod_topology_spread.plugin import PodTopologySpread

__all__ = ["DefaultConstraint", "PodTopologySpread", "PodTopologySpreadArgs"]
