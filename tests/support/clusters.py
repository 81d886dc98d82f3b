"""Clusters to ask questions about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stowage.analysis.cluster_objects import ClusterObjects
from stowage.analysis.loaded_cluster import LoadedCluster, load_cluster
from stowage.analysis.virtual_cluster import VirtualCluster
from stowage.api.config.feature_gates import parse_feature_gates
from stowage.api.config.loading import load_configuration
from stowage.api.objects.meta import ApiStruct
from stowage.cli.profiles import make_frameworks
from stowage.plugins import in_tree_registry
from tests.support.engines import configuration_of


def nodes_of_pods(cluster: VirtualCluster) -> dict[str, str]:
    """Pod -> its node, empty while it is pending."""
    return {pod.metadata.namespaced_name: pod.spec.node_name for pod in cluster.objects.pods()}


def loaded_cluster(
    *objects: ApiStruct,
    profile: Mapping[str, Any] | None = None,
    unix_s: float = 0.0,
    gates: str = "",
) -> LoadedCluster:
    """These objects, seen by an engine with one profile, by default the default one."""
    known = ClusterObjects()
    for obj in objects:
        known.add(obj)
    written = None if profile is None else configuration_of(profile)
    registry = in_tree_registry(parse_feature_gates([gates]))
    frameworks = make_frameworks(load_configuration(written), registry)
    names = ["default-scheduler"]
    return load_cluster(known, frameworks, wall_clock=lambda: unix_s, scheduler_names=names)
