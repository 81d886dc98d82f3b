"""A cluster with RBAC that notes what one user asks of it, for commands that only read."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import yaml

from simcluster import ClusterOptions, SimulatedCluster, make_node, write_kubeconfig
from simcluster.auth.rbac import Decision
from simcluster.auth.request_attributes import Attributes
from simcluster.auth.users import User
from simcluster.kinds.resources import POD_GROUPS, PODS
from simcluster.kinds.subresources.binding import bind
from simcluster.tests.support.api_client import ApiClient
from stowage.api.config.feature_gates import DEFAULT_FEATURE_GATES, FeatureGates

ADMIN, READER, UNAUTHORIZED = "admin-token", "reader-token", "unauthorized-token"
RBAC = "/apis/rbac.authorization.k8s.io/v1"


class AuditedCluster:
    """A cluster of one node, ``savanna``, and the requests of the user ``jane``.

    Args:
        cluster: The cluster.
        folder: Takes kubeconfigs.

    Attributes:
        requests: (verb, resource) of each request of the user.
    """

    def __init__(self, cluster: SimulatedCluster, folder: Path) -> None:
        self.cluster = cluster
        self.folder = folder
        self.requests: list[tuple[str, str]] = []

    @property
    def verbs(self) -> set[str]:
        """The verbs of the requests."""
        return {verb for verb, _ in self.requests}

    def kubeconfig(self, token: str = READER) -> str:
        """The path of a kubeconfig with the token of a user."""
        path = self.folder / f"{token}.kubeconfig"
        return str(write_kubeconfig(path, self.cluster.url, token))

    def create_pod(self, name: str, **metadata: Any) -> None:
        """Create a pod of another scheduler, with a secret in its environment."""
        container = {"name": "c", "image": "zebra", "env": [{"name": "A", "value": "hunter2"}]}
        pod = {
            "metadata": {"name": name, "namespace": "default", **metadata},
            "spec": {"schedulerName": "other-scheduler", "containers": [container]},
        }
        self.cluster.registry.create(PODS, "default", pod)

    def create_pod_group(self, name: str) -> None:
        """Create a gang of two pods."""
        metadata = {"name": name, "namespace": "default"}
        spec = {"schedulingPolicy": {"gang": {"minCount": 2}}}
        self.cluster.registry.create(POD_GROUPS, "default", {"metadata": metadata, "spec": spec})

    def bind_pod(self, name: str, node: str) -> None:
        """Bind a pod, as another scheduler does."""
        target = {"target": {"kind": "Node", "name": node}}
        bind(self.cluster.registry, "default", name, target)

    def note(self, user: User, attributes: Attributes, _decision: Decision) -> None:
        """Note a request."""
        if user.name == "jane":
            self.requests.append((attributes.verb, attributes.resource))


@asynccontextmanager
async def audited_cluster(
    rights: Path, folder: Path, gates: FeatureGates = DEFAULT_FEATURE_GATES
) -> AsyncIterator[AuditedCluster]:
    """A running cluster in which ``jane`` has the rights of a page of the documents.

    Args:
        rights: The page; its first YAML block is a ClusterRole and a ClusterRoleBinding.
        folder: Takes kubeconfigs.
        gates: The feature gates of the API server.
    """
    users = {READER: User("jane"), UNAUTHORIZED: User("unauthorized")}
    options = ClusterOptions(token=ADMIN, users=users, rbac=True, with_kubelet=False, gates=gates)
    async with (
        SimulatedCluster([make_node("savanna", {"cpu": "4", "pods": "9"})], options) as cluster,
        ApiClient(cluster.url, ADMIN) as api,
    ):
        role, binding = documented_rights(rights)
        await api.post(f"{RBAC}/clusterroles", role)
        await api.post(f"{RBAC}/clusterrolebindings", binding)
        found = AuditedCluster(cluster, folder)
        cluster.server.access.audit = found.note
        yield found


def documented_rights(page: Path) -> list[dict[str, Any]]:
    """The objects in the first YAML block of a page."""
    text = page.read_text(encoding="utf-8").split("```yaml\n")[1].split("```")[0]
    return list(yaml.safe_load_all(text))
