"""Node resources: what fits (NodeResourcesFit), and how evenly or tightly it fits.

NodeResourcesFit filters by requests and allocatable and scores by one of three strategies, one
module each; NodeResourcesBalancedAllocation is a plugin of its own. All arithmetic is int64 over
columns with kube-scheduler's floors, but for the fractions of BalancedAllocation, which are
float64 there as well.
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
