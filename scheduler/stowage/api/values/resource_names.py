"""Resource names and their kinds (``v1helper`` of v1.36)."""

from stowage.api.values.selectors import key_error

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"
HUGEPAGES_PREFIX = "hugepages-"
ATTACHABLE_VOLUMES_PREFIX = "attachable-volumes-"


def is_extended_resource_name(name: str) -> bool:
    """Whether a resource is an extended resource, e.g. ``nvidia.com/gpu``."""
    if "/" not in name or "kubernetes.io/" in name or name.startswith("requests."):
        return False
    return not key_error(f"requests.{name}")


def is_scalar_resource_name(name: str) -> bool:
    """Whether a resource is a scalar resource: extended, hugepages or attachable volumes."""
    return (
        name.startswith((HUGEPAGES_PREFIX, ATTACHABLE_VOLUMES_PREFIX))
        or "kubernetes.io/" in name
        or is_extended_resource_name(name)
    )


def is_accounted(name: str) -> bool:
    """Whether NodeResourcesFit accounts for requests of a resource."""
    return name in (CPU, MEMORY, EPHEMERAL_STORAGE) or is_scalar_resource_name(name)


def is_pod_level_resource(name: str) -> bool:
    """Whether a resource may be requested for a pod as a whole."""
    return name in (CPU, MEMORY) or name.startswith(HUGEPAGES_PREFIX)
