"""The pod groups of a workload file."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from stowage.analysis.cluster_objects import ClusterObjects
from stowage.analysis.simulation.workload_spec import Gangs, PodSource
from stowage.analysis.workload_pods import InvalidManifest, objects_of_manifests
from stowage.api.config.errors import ConfigError
from stowage.api.objects.pod_groups import (
    CORE_GROUPS,
    GangSchedulingPolicy,
    PodGroup,
    PodGroupSchedulingPolicy,
)


def group_template(
    source: PodSource, cluster: ClusterObjects, path: str, errors: list[ConfigError]
) -> PodGroup | None:
    """The group of a source without its name and minimum; None if its pods have none.

    Args:
        source: The source.
        cluster: The objects at the start, with the priority classes.
        path: The field of the source.
        errors: Receives the errors.
    """
    if source.group is None:
        return None
    written: dict[str, Any] = dict(source.group.template or {})
    namespace = _namespace(source)
    item = {
        "spec": {},
        **written,
        "apiVersion": f"{CORE_GROUPS}/v1alpha2",
        "kind": PodGroup.__name__,
        "metadata": {"name": source.name or "group", "namespace": namespace},
    }
    try:
        (group,) = objects_of_manifests([item], cluster).of_kind(PodGroup)
    except (InvalidManifest, TypeError) as invalid:
        errors.append(ConfigError(f"{path}.group.template", source.name, f"a PodGroup; {invalid}"))
        return PodGroup()
    policy = group.spec.scheduling_policy
    if policy != PodGroupSchedulingPolicy():
        field = f"{path}.group.template.spec.schedulingPolicy"
        errors.append(ConfigError(field, policy, "none; size and minCount stand for it"))
    return group


def named_group(template: PodGroup, name: str, gangs: Gangs, size: int) -> PodGroup:
    """The group of some pods that arrive together."""
    namespace = template.metadata.namespace
    metadata = replace(template.metadata, name=name, uid=f"{PodGroup.__name__}/{namespace}/{name}")
    least = size if gangs.min_count is None else min(gangs.min_count, size)
    policy = PodGroupSchedulingPolicy(gang=GangSchedulingPolicy(least))
    return replace(
        template, metadata=metadata, spec=replace(template.spec, scheduling_policy=policy)
    )


def _namespace(source: PodSource) -> str:
    """The namespace of the pods of a source."""
    template = source.template if isinstance(source.template, dict) else {}
    return str((template.get("metadata") or {}).get("namespace") or "default")
