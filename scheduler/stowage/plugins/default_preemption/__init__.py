"""Plugin DefaultPreemption: chooses pods of lower priority to evict so that a pod fits a node.

`eligibility` decides whether a pod may preempt. `candidates` decides which nodes are tried and
when there are enough. `victims` selects the pods to evict on many nodes at once, `budgets` finds
those that a disruption budget protects, and `ranking` chooses the node. The engine evicts.
"""

from stowage.plugins.default_preemption.args import DefaultPreemptionArgs
from stowage.plugins.default_preemption.plugin import DefaultPreemption

__all__ = ["DefaultPreemption", "DefaultPreemptionArgs"]
