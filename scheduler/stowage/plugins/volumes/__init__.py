"""Plugins VolumeRestrictions, NodeVolumeLimits, VolumeBinding, VolumeZone, and limits of 1.12.

`restrictions` rejects nodes where another pod uses an exclusive disk or claim, `limits` counts
attached volumes as v1.36 does and `legacy_limits` as 1.12 did, `binding` matches claims with
volumes or requests their provisioning, `capacity_scores` adds scores to that for a feature gate,
and `zone` compares zone labels of volumes and nodes. They are one package because they share claim
lookups.

Their answers depend on objects other than the node and the pod's class, so they read the whole
cluster and are asked in every cycle. For a pod without claims and disks they return at once. Only
`restrictions` and both limits read the pods on a node.

The plugins ignore volumes that restrict no placement (config maps, secrets, empty directories,
projections).
"""

from stowage.plugins.volumes.binding import VolumeBinding, VolumeBindingArgs
from stowage.plugins.volumes.capacity_scores import ScoringVolumeBinding, ScoringVolumeBindingArgs
from stowage.plugins.volumes.legacy_limits import (
    MaxCSIVolumeCount,
    MaxVolumeCountArgs,
    max_azure_disk_volume_count,
    max_ebs_volume_count,
    max_gce_pd_volume_count,
)
from stowage.plugins.volumes.limits import NodeVolumeLimits
from stowage.plugins.volumes.restrictions import VolumeRestrictions
from stowage.plugins.volumes.zone import VolumeZone

__all__ = [
    "MaxCSIVolumeCount",
    "MaxVolumeCountArgs",
    "NodeVolumeLimits",
    "ScoringVolumeBinding",
    "ScoringVolumeBindingArgs",
    "VolumeBinding",
    "VolumeBindingArgs",
    "VolumeRestrictions",
    "VolumeZone",
    "max_azure_disk_volume_count",
    "max_ebs_volume_count",
    "max_gce_pd_volume_count",
]
