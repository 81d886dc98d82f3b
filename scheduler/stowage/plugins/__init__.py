"""Room ``plugins``: the in-tree plugins, of kube-scheduler v1.36 and 1.12, and two of our own.

Purpose: filter and score nodes exactly as kube-scheduler does: the same verdicts, the same reasons
to the letter, the same scores to the last integer. Those of 1.12 and our `AgedPrioritySort` run
only in a profile that enables them. `PlacementFragmentation` is ours, too, and ranks places of pod
groups.

Invariants:
    - Plugins implement the protocols of ``framework.extension_points`` and import ``framework``,
      ``state`` and ``api`` only, never each other.
    - Filter and Score are array expressions over the nodes they are given: no loop over nodes.
    - Each plugin declares its `PluginTraits`; one that promises too much breaks the property test
      that compares cached with uncached answers.
    - Each plugin has a plain-Python twin in the tests that decides node by node; both must agree.

Callers: the composition root, through `in_tree_registry`; and ``analysis``, which asks single
plugins why they reject a node. The engine and the framework import no plugin.

Rejected: a base class (protocols suffice); modules that register themselves on import (the list
below is the only one).
"""

from collections.abc import Sequence
from functools import partial

from stowage.api.config.feature_gates import DEFAULT_FEATURE_GATES, FeatureGates
from stowage.framework import PluginFactory, Registry
from stowage.plugins.aged_priority_sort import AgedPrioritySort, AgedPrioritySortArgs
from stowage.plugins.default_binder import DefaultBinder
from stowage.plugins.default_preemption import DefaultPreemption, DefaultPreemptionArgs
from stowage.plugins.dynamic_resources import DynamicResources, DynamicResourcesArgs
from stowage.plugins.equal_priority import EqualPriority
from stowage.plugins.gang_scheduling import GangScheduling
from stowage.plugins.image_locality import ImageLocality, ImageLocalityPriority
from stowage.plugins.inter_pod_affinity import (
    InterPodAffinity,
    InterPodAffinityArgs,
    InterPodAffinityPriority,
)
from stowage.plugins.node_affinity import NodeAffinity, NodeAffinityArgs, NodeAffinityPriority
from stowage.plugins.node_conditions import (
    check_node_condition,
    check_node_disk_pressure,
    check_node_memory_pressure,
    check_node_pid_pressure,
)
from stowage.plugins.node_declared_features import NodeDeclaredFeatures
from stowage.plugins.node_label import NodeLabel, NodeLabelArgs
from stowage.plugins.node_name import NodeName
from stowage.plugins.node_ports import NodePorts
from stowage.plugins.node_prefer_avoid_pods import NodePreferAvoidPods
from stowage.plugins.node_resources import (
    BalancedAllocation,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFit,
    NodeResourcesFitArgs,
    RequestedToCapacityRatioPriorityArgs,
    ResourceLimitsPriority,
    balanced_resource_allocation,
    least_requested_priority,
    most_requested_priority,
    requested_to_capacity_ratio_priority,
)
from stowage.plugins.node_unschedulable import NodeUnschedulable
from stowage.plugins.placement_fragmentation import PlacementFragmentation
from stowage.plugins.pod_group_pods_count import PodGroupPodsCount
from stowage.plugins.pod_topology_spread import PodTopologySpread, PodTopologySpreadArgs
from stowage.plugins.priority_sort import PrioritySort
from stowage.plugins.scheduling_gates import SchedulingGates
from stowage.plugins.selector_spread import SelectorSpread, SelectorSpreadArgs
from stowage.plugins.service_affinity import ServiceAffinity, ServiceAffinityArgs
from stowage.plugins.taint_toleration import TaintToleration, TaintTolerationPriority
from stowage.plugins.volumes import (
    MaxCSIVolumeCount,
    MaxVolumeCountArgs,
    NodeVolumeLimits,
    ScoringVolumeBinding,
    ScoringVolumeBindingArgs,
    VolumeBinding,
    VolumeBindingArgs,
    VolumeRestrictions,
    VolumeZone,
    max_azure_disk_volume_count,
    max_ebs_volume_count,
    max_gce_pd_volume_count,
)

__all__ = ["in_tree_registry"]


def in_tree_registry(gates: FeatureGates = DEFAULT_FEATURE_GATES) -> Registry:
    """The factories of all in-tree plugins, which behave as the feature gates say."""
    return Registry(*_current(gates), *_of_1_12(), gates=gates)


def _current(gates: FeatureGates) -> Sequence[PluginFactory]:
    """The plugins of kube-scheduler v1.36, and those of Stowage alone."""
    return (
        PluginFactory(SchedulingGates.name, SchedulingGates),
        PluginFactory(PrioritySort.name, PrioritySort),
        PluginFactory(NodeUnschedulable.name, NodeUnschedulable),
        PluginFactory(NodeName.name, NodeName),
        PluginFactory(TaintToleration.name, partial(TaintToleration, gates=gates)),
        PluginFactory(NodeAffinity.name, NodeAffinity, NodeAffinityArgs),
        PluginFactory(NodePorts.name, NodePorts),
        PluginFactory(
            NodeResourcesFit.name, partial(NodeResourcesFit, gates=gates), NodeResourcesFitArgs
        ),
        PluginFactory(VolumeRestrictions.name, VolumeRestrictions),
        PluginFactory(NodeVolumeLimits.name, partial(NodeVolumeLimits, gates=gates)),
        _volume_binding(gates),
        PluginFactory(VolumeZone.name, VolumeZone),
        PluginFactory(
            PodTopologySpread.name, partial(PodTopologySpread, gates=gates), PodTopologySpreadArgs
        ),
        PluginFactory(InterPodAffinity.name, InterPodAffinity, InterPodAffinityArgs),
        PluginFactory(
            DynamicResources.name, partial(DynamicResources, gates=gates), DynamicResourcesArgs
        ),
        PluginFactory(DefaultPreemption.name, DefaultPreemption, DefaultPreemptionArgs),
        PluginFactory(
            BalancedAllocation.name, BalancedAllocation, NodeResourcesBalancedAllocationArgs
        ),
        PluginFactory(ImageLocality.name, ImageLocality),
        PluginFactory(DefaultBinder.name, DefaultBinder),
        PluginFactory(NodeDeclaredFeatures.name, partial(NodeDeclaredFeatures, gates=gates)),
        PluginFactory(GangScheduling.name, GangScheduling),
        PluginFactory(PodGroupPodsCount.name, PodGroupPodsCount),
        PluginFactory(PlacementFragmentation.name, PlacementFragmentation),
        # In no profile unless it names it:
        PluginFactory(AgedPrioritySort.name, AgedPrioritySort, AgedPrioritySortArgs),
    )


def _volume_binding(gates: FeatureGates) -> PluginFactory:
    if gates.enabled("StorageCapacityScoring"):
        return PluginFactory(VolumeBinding.name, ScoringVolumeBinding, ScoringVolumeBindingArgs)
    return PluginFactory(VolumeBinding.name, VolumeBinding, VolumeBindingArgs)


def _of_1_12() -> Sequence[PluginFactory]:
    """The plugins of kube-scheduler 1.12, in no profile unless it names them."""
    return (
        PluginFactory(SelectorSpread.name, SelectorSpread, SelectorSpreadArgs),
        PluginFactory(NodePreferAvoidPods.name, NodePreferAvoidPods),
        PluginFactory(EqualPriority.name, EqualPriority),
        PluginFactory("CheckNodeCondition", check_node_condition),
        PluginFactory("CheckNodeMemoryPressure", check_node_memory_pressure),
        PluginFactory("CheckNodeDiskPressure", check_node_disk_pressure),
        PluginFactory("CheckNodePIDPressure", check_node_pid_pressure),
        PluginFactory("MaxEBSVolumeCount", max_ebs_volume_count, MaxVolumeCountArgs),
        PluginFactory("MaxGCEPDVolumeCount", max_gce_pd_volume_count, MaxVolumeCountArgs),
        PluginFactory("MaxAzureDiskVolumeCount", max_azure_disk_volume_count, MaxVolumeCountArgs),
        PluginFactory(MaxCSIVolumeCount.name, MaxCSIVolumeCount),
        PluginFactory(NodeLabel.name, NodeLabel, NodeLabelArgs),
        PluginFactory(ServiceAffinity.name, ServiceAffinity, ServiceAffinityArgs),
        PluginFactory(ResourceLimitsPriority.name, ResourceLimitsPriority),
        PluginFactory("LeastRequestedPriority", least_requested_priority),
        PluginFactory("MostRequestedPriority", most_requested_priority),
        PluginFactory("BalancedResourceAllocation", balanced_resource_allocation),
        PluginFactory(
            "RequestedToCapacityRatioPriority",
            requested_to_capacity_ratio_priority,
            RequestedToCapacityRatioPriorityArgs,
        ),
        PluginFactory(NodeAffinityPriority.name, NodeAffinityPriority),
        PluginFactory(TaintTolerationPriority.name, TaintTolerationPriority),
        PluginFactory(ImageLocalityPriority.name, ImageLocalityPriority),
        PluginFactory(
            InterPodAffinityPriority.name, InterPodAffinityPriority, InterPodAffinityArgs
        ),
    )
