"""Plugins NodeResourcesFit and NodeResourcesBalancedAllocation.

NodeResourcesFit filters by requests and allocatable, and scores by one of three strategies, each
in a module of its own. Arithmetic is int64 over columns with kube-scheduler's floors, except the
fractions of NodeResourcesBalancedAllocation, which are float64 as in kube-scheduler.

`priorities` and `resource_limits` have those of kube-scheduler 1.12, each a plugin of its own.
"""

from stowage.plugins.node_resources.args import (
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    RequestedToCapacityRatioPriorityArgs,
)
from stowage.plugins.node_resources.balanced_allocation import BalancedAllocation
from stowage.plugins.node_resources.fit import NodeResourcesFit
from stowage.plugins.node_resources.priorities import (
    balanced_resource_allocation,
    least_requested_priority,
    most_requested_priority,
    requested_to_capacity_ratio_priority,
)
from stowage.plugins.node_resources.resource_limits import ResourceLimitsPriority

__all__ = [
    "BalancedAllocation",
    "NodeResourcesBalancedAllocationArgs",
    "NodeResourcesFit",
    "NodeResourcesFitArgs",
    "RequestedToCapacityRatioPriorityArgs",
    "ResourceLimitsPriority",
    "balanced_resource_allocation",
    "least_requested_priority",
    "most_requested_priority",
    "requested_to_capacity_ratio_priority",
]
