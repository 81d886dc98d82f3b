"""Stores the roles and bindings that a new cluster with RBAC has (``bootstrap_roles.yaml``)."""

from importlib.resources import files
from typing import Any

from simcluster.apiserver.yaml_text import load_yaml_documents
from simcluster.kinds.resources import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES
from simcluster.store.registry import Registry

_RESOURCES = {found.kind: found for found in (CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS)}


def make_bootstrap_roles(registry: Registry) -> None:
    """Create the bootstrap roles and bindings that do not exist yet."""
    text = files("simcluster.auth").joinpath("bootstrap_roles.yaml").read_bytes()
    objects: Any = load_yaml_documents(text)
    for obj in objects:
        resource = _RESOURCES[obj["kind"]]
        if registry.store.get(resource.stored_in, "", obj["metadata"]["name"]) is None:
            registry.create(resource, "", obj)
