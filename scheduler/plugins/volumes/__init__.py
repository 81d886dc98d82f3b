"""Volumes: four plugins that share one question, which volumes of a pod tie it to nodes.

A pod without such volumes passes exactly as upstream: every plugin here says Skip. A pod with
such volumes is refused with an honest reason, for placing it needs to know claims, volumes and
their topology, which this version does not watch. Refusing costs a wait; placing it without
knowing would cost a pod that never starts.

Volumes that tie a pod to nothing (config maps, secrets, empty directories, projections, inline
CSI volumes of drivers without limits) are no concern of these plugins.
"""

from scheduler.plugins.volumes.plugins import (
    NodeVolumeLimits,
    VolumeBinding,
    VolumeBindingArgs,
    VolumeRestrictions,
    VolumeZone,
)

__all__ = [
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeBindingArgs",
    "VolumeRestrictions",
    "VolumeZone",
]
