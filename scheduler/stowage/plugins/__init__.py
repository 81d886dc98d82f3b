"""Room ``plugins``: the in-tree plugins, one upstream plugin per module or package.

Purpose: filter and score nodes exactly as kube-scheduler v1.36 does: the same verdicts, the same
reasons to the letter, the same scores to the last integer.

Invariants:
    - Plugins implement the protocols of ``framework.extension_points`` and import ``framework``,
      ``state`` and ``api`` only, never each other.
    - Filter and Score are array expressions over the nodes they are given: no loop over nodes.
    - Each plugin declares its `PluginTraits`; one that promises too much breaks the property test
      that compares cached with uncached answers.
    - Each plugin has a plain-Python twin in the tests that decides node by node; both must agree.

Callers: the composition root, through `in_tree_registry`; no other module knows plugin names.

Rejected: a base class (protocols suffice); modules that register themselves on import (the list
below is the only one).
"""

from stowage.framework import PluginFactory, Registry
from stowage.plugins.default_binder import DefaultBinder
from stowage.plugins.default_preemption import DefaultPreemption, DefaultPreemptionArgs
from stowage.plugins.dynamic_resources import DynamicResources, DynamicResourcesArgs
from stowage.plugins.equal_priority import EqualPriority
from stowage.plugins.image_locality import ImageLocality
from stowage.plugins.inter_pod_affinity import InterPodAffinity, InterPodAffinityArgs
from stowage.plugins.node_affinity import NodeAffinity, NodeAffinityArgs
from stowage.plugins.node_declared_features import NodeDeclaredFeatures
from stowage.plugins.node_name import NodeName
from stowage.plugins.node_ports import NodePorts
from stowage.plugins.node_prefer_avoid_pods import NodePreferAvoidPods
from stowage.plugins.node_resources import (
    BalancedAllocation,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFit,
    NodeResourcesFitArgs,
)
from stowage.plugins.node_unschedulable import NodeUnschedulable
from stowage.plugins.pod_topology_spread import PodTopologySpread, PodTopologySpreadArgs
from stowage.plugins.priority_sort import PrioritySort
from stowage.plugins.scheduling_gates import SchedulingGates
from stowage.plugins.selector_spread import SelectorSpread
from stowage.plugins.taint_toleration import TaintToleration
from stowage.plugins.volumes import (
    NodeVolumeLimits,
    VolumeBinding,
    VolumeBindingArgs,
    VolumeRestrictions,
    VolumeZone,
)

__all__ = ["in_tree_registry"]


def in_tree_registry() -> Registry:
    """The factories of all in-tree plugins."""
    return Registry(
        PluginFactory(SchedulingGates.name, SchedulingGates),
        PluginFactory(PrioritySort.name, PrioritySort),
        PluginFactory(NodeUnschedulable.name, NodeUnschedulable),
        PluginFactory(NodeName.name, NodeName),
        PluginFactory(TaintToleration.name, TaintToleration),
        PluginFactory(NodeAffinity.name, NodeAffinity, NodeAffinityArgs),
        PluginFactory(NodePorts.name, NodePorts),
        PluginFactory(NodeResourcesFit.name, NodeResourcesFit, NodeResourcesFitArgs),
        PluginFactory(VolumeRestrictions.name, VolumeRestrictions),
        PluginFactory(NodeVolumeLimits.name, NodeVolumeLimits),
        PluginFactory(VolumeBinding.name, VolumeBinding, VolumeBindingArgs),
        PluginFactory(VolumeZone.name, VolumeZone),
        PluginFactory(PodTopologySpread.name, PodTopologySpread, PodTopologySpreadArgs),
        PluginFactory(InterPodAffinity.name, InterPodAffinity, InterPodAffinityArgs),
        PluginFactory(DynamicResources.name, DynamicResources, DynamicResourcesArgs),
        PluginFactory(DefaultPreemption.name, DefaultPreemption, DefaultPreemptionArgs),
        PluginFactory(
            BalancedAllocation.name, BalancedAllocation, NodeResourcesBalancedAllocationArgs
        ),
        PluginFactory(ImageLocality.name, ImageLocality),
        PluginFactory(DefaultBinder.name, DefaultBinder),
        PluginFactory(NodeDeclaredFeatures.name, NodeDeclaredFeatures),
        # Of kube-scheduler 1.12, in no profile unless it names them:
        PluginFactory(SelectorSpread.name, SelectorSpread),
        PluginFactory(NodePreferAvoidPods.name, NodePreferAvoidPods),
        PluginFactory(EqualPriority.name, EqualPriority),
    )
