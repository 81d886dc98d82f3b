"""The predicates, priorities and providers of kube-scheduler 1.12, and the plugins that are equal.

``algorithmprovider/defaults`` of 1.12. The feature gate TaintNodesByCondition, on by default since
1.12, makes two predicates mandatory.
"""

from __future__ import annotations

from collections.abc import Mapping

PREDICATES: Mapping[str, tuple[str, ...]] = {
    "CheckNodeCondition": ("CheckNodeCondition",),
    "CheckNodeUnschedulable": ("NodeUnschedulable",),
    "GeneralPredicates": ("NodeResourcesFit", "NodeName", "NodePorts", "NodeAffinity"),
    "HostName": ("NodeName",),
    "PodFitsHostPorts": ("NodePorts",),
    "PodFitsPorts": ("NodePorts",),
    "MatchNodeSelector": ("NodeAffinity",),
    "PodFitsResources": ("NodeResourcesFit",),
    "NoDiskConflict": ("VolumeRestrictions",),
    "PodToleratesNodeTaints": ("TaintToleration",),
    "PodToleratesNodeNoExecuteTaints": ("TaintToleration",),
    "CheckNodeLabelPresence": ("NodeLabel",),
    "CheckServiceAffinity": ("ServiceAffinity",),
    "MaxEBSVolumeCount": ("MaxEBSVolumeCount",),
    "MaxGCEPDVolumeCount": ("MaxGCEPDVolumeCount",),
    "MaxCSIVolumeCountPred": ("MaxCSIVolumeCount",),
    "MaxAzureDiskVolumeCount": ("MaxAzureDiskVolumeCount",),
    "CheckVolumeBinding": ("VolumeBinding",),
    "NoVolumeZoneConflict": ("VolumeZone",),
    "CheckNodeMemoryPressure": ("CheckNodeMemoryPressure",),
    "CheckNodePIDPressure": ("CheckNodePIDPressure",),
    "CheckNodeDiskPressure": ("CheckNodeDiskPressure",),
    "MatchInterPodAffinity": ("InterPodAffinity",),
}
"""Predicate -> its plugins, in the order in which 1.12 asks (``predicatesOrdering``)."""

MANDATORY_PREDICATES = ("CheckNodeUnschedulable", "PodToleratesNodeTaints")
DEFAULT_PREDICATES = (
    "CheckNodeCondition",
    "GeneralPredicates",
    "NoDiskConflict",
    "PodToleratesNodeTaints",
    "MaxEBSVolumeCount",
    "MaxGCEPDVolumeCount",
    "MaxCSIVolumeCountPred",
    "MaxAzureDiskVolumeCount",
    "CheckVolumeBinding",
    "NoVolumeZoneConflict",
    "CheckNodeMemoryPressure",
    "CheckNodePIDPressure",
    "CheckNodeDiskPressure",
    "MatchInterPodAffinity",
)

DEFAULT_FILTERS = (
    "NodeResourcesFit",
    "NodeName",
    "NodePorts",
    "NodeAffinity",
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeZone",
    "InterPodAffinity",
)
"""Default plugins of v1.36 that run only if a predicate asks for them; NodeVolumeLimits never."""

LATER_FILTERS = ("PodTopologySpread", "DynamicResources", "NodeDeclaredFeatures")
"""Filter plugins of what 1.12 does not know. They judge only pods that use it, and stay."""

PRIORITIES: Mapping[str, str] = {
    "SelectorSpreadPriority": "SelectorSpread",
    "ServiceSpreadingPriority": "SelectorSpread",
    "InterPodAffinityPriority": "InterPodAffinityPriority",
    "LeastRequestedPriority": "LeastRequestedPriority",
    "MostRequestedPriority": "MostRequestedPriority",
    "BalancedResourceAllocation": "BalancedResourceAllocation",
    "RequestedToCapacityRatioPriority": "RequestedToCapacityRatioPriority",
    "NodePreferAvoidPodsPriority": "NodePreferAvoidPods",
    "NodeAffinityPriority": "NodeAffinityPriority",
    "TaintTolerationPriority": "TaintTolerationPriority",
    "ImageLocalityPriority": "ImageLocalityPriority",
    "ResourceLimitsPriority": "ResourceLimitsPriority",
    "EqualPriority": "EqualPriority",
}
"""Priority -> its plugin."""

SERVICES_ONLY = "ServiceSpreadingPriority"
EQUAL = "EqualPriority"
PRE_SCORE = ("InterPodAffinityPriority", "NodeAffinityPriority")
"""The plugins of priorities that also take part in PreScore."""

_AVOID_WEIGHT = 10000
_DEFAULT_PRIORITIES: Mapping[str, int] = {
    "SelectorSpreadPriority": 1,
    "InterPodAffinityPriority": 1,
    "LeastRequestedPriority": 1,
    "BalancedResourceAllocation": 1,
    "NodePreferAvoidPodsPriority": _AVOID_WEIGHT,
    "NodeAffinityPriority": 1,
    "TaintTolerationPriority": 1,
    "ImageLocalityPriority": 1,
}
DEFAULT_PROVIDER = "DefaultProvider"
PROVIDERS: Mapping[str, Mapping[str, int]] = {
    DEFAULT_PROVIDER: _DEFAULT_PRIORITIES,
    "ClusterAutoscalerProvider": {
        name.replace("LeastRequested", "MostRequested"): weight
        for name, weight in _DEFAULT_PRIORITIES.items()
    },
}
"""Provider -> its priorities with their weights; the predicates are `DEFAULT_PREDICATES`."""

PERCENTAGE_OF_NODES_TO_SCORE = 50
"""The default of 1.12."""
