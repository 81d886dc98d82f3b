"""Names that kube-scheduler had once, and the plugins that do the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from stowage.api.config.legacy_algorithms import PREDICATES, PRIORITIES, SERVICES_ONLY
from stowage.api.decoding.suggestion import did_you_mean

_FIT = "NodeResourcesFit with scoringStrategy.type"
REPLACEMENTS: Mapping[str, str] = {
    # Predicates and priorities that are an argument of a plugin, or later than 1.12.
    "CheckNodeLabelPresence": "NodeLabel with presentLabels or absentLabels",
    "CheckServiceAffinity": "ServiceAffinity with affinityLabels",
    "EvenPodsSpread": "PodTopologySpread",
    "EvenPodsSpreadPriority": "PodTopologySpread",
    "MaxCinderVolumeCount": "NodeVolumeLimits",
    SERVICES_ONLY: "SelectorSpread with servicesOnly: true",
    # Plugins that v1.36 no longer has.
    "AzureDiskLimits": "NodeVolumeLimits",
    "CinderLimits": "NodeVolumeLimits",
    "DefaultPodTopologySpread": "SelectorSpread",
    "EBSLimits": "NodeVolumeLimits",
    "GCEPDLimits": "NodeVolumeLimits",
    "NodeResourceLimits": "ResourceLimitsPriority",
    "NodeResourcesLeastAllocated": f"{_FIT}: LeastAllocated",
    "NodeResourcesMostAllocated": f"{_FIT}: MostAllocated",
    "RequestedToCapacityRatio": f"{_FIT}: RequestedToCapacityRatio",
}
"""Name -> what to use instead, beyond `PREDICATES` and `PRIORITIES`."""


def replacement(name: str) -> str | None:
    """The plugin that does what a predicate, priority or removed plugin did; None if unknown.

    Examples:
        >>> replacement("GeneralPredicates")
        'NodeResourcesFit, NodeName, NodePorts and NodeAffinity'
    """
    if name in REPLACEMENTS:
        return REPLACEMENTS[name]
    if name in PRIORITIES:
        return PRIORITIES[name]
    *others, last = PREDICATES.get(name, (None,))
    return f"{', '.join(filter(None, others))} and {last}" if others else last


def known_plugin_hint(name: str, known: Iterable[str]) -> str:
    """What follows "the name of a known plugin": what replaces a name, or is most alike."""
    instead = replacement(name)
    return did_you_mean(name, known) if instead is None else f"; {name}: use {instead}"
