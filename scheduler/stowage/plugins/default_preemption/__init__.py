"""DefaultPreemption: take less important pods from a node so that a pod fits there.

`eligibility` says whether a pod may preempt at all, `victims` finds on many nodes at once which
pods have to go, `budgets` which of those a disruption budget protects, `candidates` how many nodes
are looked at, and `ranking` which of them is best. Evicting the victims is the engine's.
"""

from stowage.plugins.default_preemption.args import DefaultPreemptionArgs
from stowage.plugins.default_preemption.plugin import DefaultPreemption

__all__ = ["DefaultPreemption", "DefaultPreemptionArgs"]
