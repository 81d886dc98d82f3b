"""Plugins NodeResourcesFit and NodeResourcesBalancedAllocation.

NodeResourcesFit filters by requests and allocatable, and scores by one of three strategies, each
in a module of its own. Arithmetic is int64 over columns with kube-scheduler's floors, except the
fractions of NodeResourcesBalancedAllocation, which are float64 as in kube-scheduler.
"""

from stowage.plugins.node_resources.args import (
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
)
from stowage.plugins.node_resources.balanced_allocation import BalancedAllocation
from stowage.plugins.node_resources.fit import NodeResourcesFit

__all__ = [
    "BalancedAllocation",
    "NodeResourcesBalancedAllocationArgs",
    "NodeResourcesFit",
    "NodeResourcesFitArgs",
]
