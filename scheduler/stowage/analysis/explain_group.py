"""Explains a pod group: which of its members fit, and what the others lack."""

from __future__ import annotations

from stowage.analysis.described_group import describe_group
from stowage.analysis.explain_pod import NotInCluster
from stowage.analysis.group_explanation import GroupExplanation
from stowage.analysis.loaded_cluster import LoadedCluster


def explain_group(cluster: LoadedCluster, key: str) -> GroupExplanation:
    """Explain what keeps a pod group from being scheduled, or what it would get.

    The pending members are tried as the scheduler's cycle of a group does it: one after the other,
    each beside those before it, in each domain of a topology key.

    Args:
        cluster: The cluster.
        key: ``namespace/name``.

    Raises:
        NotInCluster: There is no such group, and no pod names it.
    """
    state = cluster.engine.state
    groups = state.cache.pod_groups
    if groups.group(key) is None and not groups.members(key).num_all:
        raise NotInCluster(f"there is no pod group {key}")
    return describe_group(state, key).explanation
