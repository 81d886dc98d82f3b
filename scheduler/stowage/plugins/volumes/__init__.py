"""Plugins VolumeRestrictions, NodeVolumeLimits, VolumeBinding and VolumeZone.

`restrictions` rejects nodes where another pod uses an exclusive disk or claim, `limits` counts
attached volumes, `binding` matches claims with volumes or requests their provisioning, and `zone`
compares zone labels of volumes and nodes. They are one package because they share claim lookups.

Their answers depend on objects other than the node and the pod's class, so they read the whole
cluster and are asked in every cycle. For a pod without claims and disks they return at once. Only
`restrictions` and `limits` read the pods on a node.

The plugins ignore volumes that restrict no placement (config maps, secrets, empty directories,
projections).
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
