"""Aggregated ClusterRoles and the bootstrap roles."""

from typing import Any

import pytest

from simcluster.auth.bootstrap_roles import make_bootstrap_roles
from simcluster.auth.rbac import RbacAuthorizer
from simcluster.auth.request_attributes import Attributes
from simcluster.auth.users import User
from simcluster.kinds.resources import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS
from simcluster.tests.support.manual_cluster import ManualCluster

Json = dict[str, Any]
USER = User("user")
LABEL = {"rbac.authorization.k8s.io/aggregate-to-view": "true"}


def may(cluster: ManualCluster, user: User, verb: str, resource: str, **where: str) -> bool:
    group, _, plural = resource.rpartition("/")
    attributes = Attributes(
        verb, "", is_resource_request=True, group=group, resource=plural, **where
    )
    return RbacAuthorizer(cluster.store).decide(user, attributes).is_allowed


def bootstrapped(role: str) -> ManualCluster:
    """A cluster where a user has a role in the namespace default."""
    cluster = ManualCluster(0)
    make_bootstrap_roles(cluster.registry)
    binding = {
        "metadata": {"name": "user"},
        "roleRef": {"kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "User", "name": "user"}],
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
def test_each_user_role_includes_the_weaker_one(
    role: str, reads: bool, reads_secrets: bool, writes: bool, grants: bool
) -> None:
    cluster = bootstrapped(role)
    here = {"namespace": "default"}
    assert may(cluster, USER, "list", "apps/deployments", **here) is reads
    assert may(cluster, USER, "get", "secrets", **here) is reads_secrets
    assert may(cluster, USER, "create", "pods", **here) is writes
    rolebindings = "rbac.authorization.k8s.io/rolebindings"
    assert may(cluster, USER, "create", rolebindings, **here) is grants
    assert not may(cluster, USER, "list", "pods", namespace="kube-system")
    assert not may(cluster, USER, "list", "nodes")


def test_a_labelled_role_is_aggregated_until_it_is_deleted() -> None:
    cluster = bootstrapped("view")
    rule = {"apiGroups": ["x.example"], "resources": ["things"], "verbs": ["get"]}
    part = {"metadata": {"name": "things", "labels": LABEL}, "rules": [rule]}
    cluster.create(CLUSTER_ROLES, part)
    cluster.settle()
    assert may(cluster, USER, "get", "x.example/things", namespace="default")
    cluster.delete(CLUSTER_ROLES, "things")
    assert not may(cluster, USER, "get", "x.example/things", namespace="default")


def test_the_scheduler_user_has_the_scheduler_role() -> None:
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


def test_existing_roles_are_not_overwritten() -> None:
    cluster = ManualCluster(0)
    cluster.create(CLUSTER_ROLES, {"metadata": {"name": "cluster-admin"}, "rules": []})
    make_bootstrap_roles(cluster.registry)
    assert cluster.get(CLUSTER_ROLES, "cluster-admin")["rules"] == []
    assert "cluster-admin" in cluster.names(CLUSTER_ROLE_BINDINGS)
