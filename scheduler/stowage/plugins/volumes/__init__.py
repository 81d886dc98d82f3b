"""Volumes: four plugins that share one question, which volumes of a pod tie it to nodes.

`restrictions` keeps apart what only one pod may use, `limits` counts what is attached, `binding`
matches claims with volumes or has volumes made, `zone` compares old zone labels. They are one
package because they look up the same claims.

What they answer depends on objects other than the node and the pod's class: they declare that they
read the whole cluster and are asked in every cycle, for all nodes at once. A pod without claims
and disks costs a look at an empty tuple. Of the pods on a node only the first two read anything;
to the others it is all the same which pods preemption takes away.

Volumes that tie a pod to nothing (config maps, secrets, empty directories, projections) are no
concern of these plugins.
"""

from stowage.plugins.volumes.binding import VolumeBinding, VolumeBindingArgs
from stowage.plugins.volumes.limits import NodeVolumeLimits
from stowage.plugins.volumes.restrictions import VolumeRestrictions
from stowage.plugins.volumes.zone import VolumeZone

__all__ = [
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeBindingArgs",
    "VolumeRestrictions",
    "VolumeZone",
]
