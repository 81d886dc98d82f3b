"""Nodes as columns: one row per node, one column per property that plugins read.

Purpose. A plugin judges all nodes with one numpy expression. So allocatable resources, usage,
labels, taints, images and host ports are arrays over rows.

Invariants. A row belongs to a node name while there is a node object, a pod or a storage object on
it; then it is reused. Only `ClusterCache` writes. Readers get read-only views of live memory.

Rejected. A node object per row with the sums of its pods, like ``NodeInfo``: plugins would loop
over nodes.
"""
