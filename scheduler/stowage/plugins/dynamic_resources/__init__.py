"""Plugin DynamicResources: devices for pods by claim (``dynamicresources`` of v1.36).

Structure. `plugin` has the extension points. `pod_claims` finds a pod's claims, `node_filter` says
where allocated claims are unavailable and which extended resources DRA serves on which node,
`answers` where the others can be allocated. `allocator` is the exact search on one node, and
`plain_requests` decides simple requests for all nodes at once. `pre_bind` says what to write.

The search stops when the time limit for one node has passed, which the cycle's state says. The
attempt of the pod then ends with an error, and no further node is
searched.
"""

from stowage.plugins.dynamic_resources.args import DynamicResourcesArgs
from stowage.plugins.dynamic_resources.plugin import DynamicResources

__all__ = ["DynamicResources", "DynamicResourcesArgs"]
