"""ClusterRoles that are put together, and what the bootstrap roles allow."""

from typing import Any

import pytest

from simcluster.auth.bootstrap_roles import make_bootstrap_roles
from simcluster.auth.rbac import RbacAuthorizer
from simcluster.auth.request_attributes import Attributes
from simcluster.auth.users import User
from simcluster.kinds.resources import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS
from simcluster.tests.support.manual_cluster import ManualCluster

Json = dict[str, Any]
SOMEBODY = User("somebody")
LABEL = {"rbac.authorization.k8s.io/aggregate-to-view": "true"}


def may(cluster: ManualCluster, user: User, verb: str, resource: str, **where: str) -> bool:
    group, _, plural = resource.rpartition("/")
    attributes = Attributes(
        verb, "", is_resource_request=True, group=group, resource=plural, **where
    )
    return RbacAuthorizer(cluster.store).decide(user, attributes).is_allowed


def bootstrapped(role: str) -> ManualCluster:
    """A cluster where somebody has a role in the namespace default."""
    cluster = ManualCluster(0)
    make_bootstrap_roles(cluster.registry)
    binding = {
        "metadata": {"name": "somebody"},
        "roleRef": {"kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "User", "name": "somebody"}],
    }
    cluster.create(ROLE_BINDINGS, binding)
    cluster.settle()
    return cluster


@pytest.mark.parametrize(
    ("role", "reads", "reads_secrets", "writes", "grants"),
    [
        ("view", True, False, False, False),
        ("edit", True, True, True, False),
        ("admin", True, True, True, True),
    ],
)
def test_each_role_holds_the_one_before(
    role: str, reads: bool, reads_secrets: bool, writes: bool, grants: bool
) -> None:
    cluster = bootstrapped(role)
    here = {"namespace": "default"}
    assert may(cluster, SOMEBODY, "list", "apps/deployments", **here) is reads
    assert may(cluster, SOMEBODY, "get", "secrets", **here) is reads_secrets
    assert may(cluster, SOMEBODY, "create", "pods", **here) is writes
    rolebindings = "rbac.authorization.k8s.io/rolebindings"
    assert may(cluster, SOMEBODY, "create", rolebindings, **here) is grants
    assert not may(cluster, SOMEBODY, "list", "pods", namespace="kube-system")
    assert not may(cluster, SOMEBODY, "list", "nodes")


def test_a_role_with_the_label_counts_at_once_and_no_longer_than_it_is_there() -> None:
    cluster = bootstrapped("view")
    rule = {"apiGroups": ["x.example"], "resources": ["things"], "verbs": ["get"]}
    part = {"metadata": {"name": "things", "labels": LABEL}, "rules": [rule]}
    cluster.create(CLUSTER_ROLES, part)
    cluster.settle()
    assert may(cluster, SOMEBODY, "get", "x.example/things", namespace="default")
    cluster.delete(CLUSTER_ROLES, "things")
    assert not may(cluster, SOMEBODY, "get", "x.example/things", namespace="default")


def test_the_scheduler_s_role_is_the_scheduler_s() -> None:
    cluster = bootstrapped("view")
    scheduler = User("system:kube-scheduler")
    for verb, resource in (
        ("watch", "pods"),
        ("patch", "persistentvolumeclaims"),
        ("list", "storage.k8s.io/storageclasses"),
        ("watch", "policy/poddisruptionbudgets"),
    ):
        assert may(cluster, scheduler, verb, resource)
    assert not may(cluster, scheduler, "delete", "nodes")


def test_roles_that_exist_stay_as_they_are() -> None:
    cluster = ManualCluster(0)
    cluster.create(CLUSTER_ROLES, {"metadata": {"name": "cluster-admin"}, "rules": []})
    make_bootstrap_roles(cluster.registry)
    assert cluster.get(CLUSTER_ROLES, "cluster-admin")["rules"] == []
    assert "cluster-admin" in cluster.names(CLUSTER_ROLE_BINDINGS)
