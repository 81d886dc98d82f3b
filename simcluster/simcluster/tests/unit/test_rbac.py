"""Authorization by roles and bindings, as in kube-apiserver's RBAC authorizer."""

from typing import Any

import pytest

from simcluster.apiserver.errors import ApiError
from simcluster.auth.rbac import Decision, RbacAuthorizer, rule_allows
from simcluster.auth.request_attributes import Attributes, attributes_of
from simcluster.auth.users import ADMINISTRATOR, User, service_account_user
from simcluster.clock import Clock
from simcluster.kinds.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    NAMESPACES,
    ROLE_BINDINGS,
    ROLES,
)
from simcluster.store.registry import Registry
from simcluster.store.store import Store

Json = dict[str, Any]

ROBOT = service_account_user("a", "robot")
LIST_PODS = attributes_of("GET", "/api/v1/namespaces/a/pods", {})
LIST_ALL_PODS = attributes_of("GET", "/api/v1/pods", {})
READ_PODS: Json = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}


@pytest.fixture
def registry() -> Registry:
    registry = Registry(Store(), Clock(lambda: 0.0))
    for name in ("a", "b"):
        registry.create(NAMESPACES, "", {"metadata": {"name": name}})
    return registry


def robot(namespace: str = "a") -> Json:
    return {"kind": "ServiceAccount", "name": "robot", "namespace": namespace}


def bind(registry: Registry, subject: Json, role_kind: str, namespace: str = "") -> None:
    binding = {
        "metadata": {"name": "readers"},
        "roleRef": {"kind": role_kind, "name": "reader"},
        "subjects": [subject],
    }
    registry.create(ROLE_BINDINGS if namespace else CLUSTER_ROLE_BINDINGS, namespace, binding)


def make_reader(registry: Registry, namespace: str = "") -> None:
    role = {"metadata": {"name": "reader"}, "rules": [READ_PODS]}
    registry.create(ROLES if namespace else CLUSTER_ROLES, namespace, role)


def decide(registry: Registry, user: User, attributes: Attributes) -> Decision:
    return RbacAuthorizer(registry.store).decide(user, attributes)


def test_a_user_without_bindings_has_no_access(registry: Registry) -> None:
    make_reader(registry)
    assert decide(registry, ROBOT, LIST_PODS) == Decision(False, "")


def test_a_cluster_role_binding_applies_in_every_namespace(registry: Registry) -> None:
    make_reader(registry)
    bind(registry, robot(), "ClusterRole")
    reason = (
        'RBAC: allowed by ClusterRoleBinding "readers" of ClusterRole "reader" to ServiceAccount '
        '"robot/a"'
    )
    assert decide(registry, ROBOT, LIST_PODS) == Decision(True, reason)
    assert decide(registry, ROBOT, LIST_ALL_PODS).is_allowed
    other = service_account_user("b", "robot")
    assert not decide(registry, other, LIST_PODS).is_allowed


@pytest.mark.parametrize("role_kind", ["Role", "ClusterRole"])
def test_a_role_binding_applies_in_its_namespace(registry: Registry, role_kind: str) -> None:
    make_reader(registry, "a" if role_kind == "Role" else "")
    bind(registry, robot(), role_kind, "a")
    assert decide(registry, ROBOT, LIST_PODS).is_allowed
    assert not decide(registry, ROBOT, LIST_ALL_PODS).is_allowed
    elsewhere = attributes_of("GET", "/api/v1/namespaces/b/pods", {})
    assert not decide(registry, ROBOT, elsewhere).is_allowed


@pytest.mark.parametrize(
    ("subject", "user"),
    [
        ({"kind": "User", "name": "ann"}, User("ann")),
        ({"kind": "Group", "name": "system:serviceaccounts:a"}, ROBOT),
    ],
)
def test_bindings_can_have_users_and_groups_as_subjects(
    registry: Registry, subject: Json, user: User
) -> None:
    make_reader(registry)
    bind(registry, subject, "ClusterRole")
    assert decide(registry, user, LIST_PODS).is_allowed
    assert not decide(registry, User("bob", ("others",)), LIST_PODS).is_allowed


def test_a_binding_to_a_missing_role_is_reported(registry: Registry) -> None:
    bind(registry, robot(), "ClusterRole")
    reason = 'RBAC: clusterrole.rbac.authorization.k8s.io "reader" not found'
    assert decide(registry, ROBOT, LIST_PODS) == Decision(False, reason)


def test_masters_may_do_everything(registry: Registry) -> None:
    assert decide(registry, ADMINISTRATOR, LIST_PODS).is_allowed


BINDING = attributes_of("POST", "/api/v1/namespaces/a/pods/p/binding", {})
LEASE = attributes_of("PUT", "/apis/coordination.k8s.io/v1/namespaces/a/leases/mine", {})
VERSION = attributes_of("GET", "/version", {})


@pytest.mark.parametrize(
    ("rule", "attributes", "is_allowed"),
    [
        ({**READ_PODS, "verbs": ["*"]}, LIST_PODS, True),
        ({**READ_PODS, "verbs": ["get"]}, LIST_PODS, False),
        ({**READ_PODS, "apiGroups": ["*"], "resources": ["*"]}, LIST_PODS, True),
        ({**READ_PODS, "apiGroups": ["apps"]}, LIST_PODS, False),
        ({**READ_PODS, "verbs": ["create"]}, BINDING, False),
        ({**READ_PODS, "verbs": ["create"], "resources": ["pods/binding"]}, BINDING, True),
        ({**READ_PODS, "verbs": ["create"], "resources": ["*/binding"]}, BINDING, True),
        ({**READ_PODS, "verbs": ["create"], "resources": ["*"]}, BINDING, True),
        ({**READ_PODS, "resourceNames": ["p"]}, LIST_PODS, False),
        ({"nonResourceURLs": ["/version"], "verbs": ["get"]}, VERSION, True),
        ({"nonResourceURLs": ["/ver*"], "verbs": ["*"]}, VERSION, True),
        ({"nonResourceURLs": ["*"], "verbs": ["get"]}, VERSION, True),
        ({"nonResourceURLs": ["/api/*"], "verbs": ["get"]}, VERSION, False),
        ({"nonResourceURLs": ["*"], "verbs": ["*"]}, LIST_PODS, False),
        (READ_PODS, VERSION, False),
    ],
)
def test_a_rule_allows_the_named_verbs_and_resources(
    rule: Json, attributes: Attributes, is_allowed: bool
) -> None:
    assert rule_allows(rule, attributes) is is_allowed


@pytest.mark.parametrize(("name", "is_allowed"), [("mine", True), ("other", False)])
def test_a_rule_may_name_the_objects(name: str, is_allowed: bool) -> None:
    rule = {
        "apiGroups": ["coordination.k8s.io"],
        "resources": ["leases"],
        "resourceNames": [name],
        "verbs": ["update"],
    }
    assert rule_allows(rule, LEASE) is is_allowed


def test_the_rules_of_a_user_are_those_of_all_bound_roles(registry: Registry) -> None:
    make_reader(registry)
    bind(registry, robot(), "ClusterRole")
    assert RbacAuthorizer(registry.store).rules_for(ROBOT, "a") == [READ_PODS]


def test_the_role_of_a_binding_cannot_be_changed(registry: Registry) -> None:
    bind(registry, robot(), "ClusterRole")
    changed = {
        "metadata": {"name": "readers"},
        "roleRef": {"kind": "ClusterRole", "name": "another"},
        "subjects": [robot()],
    }
    with pytest.raises(ApiError, match="cannot change roleRef"):
        registry.update(CLUSTER_ROLE_BINDINGS, "", "readers", changed)


@pytest.mark.parametrize(
    ("binding", "message"),
    [
        ({"roleRef": {"kind": "Role", "name": "r"}}, 'roleRef.kind: Unsupported value: "Role"'),
        ({"roleRef": {"kind": "ClusterRole"}}, "roleRef.name: Required value"),
        (
            {
                "roleRef": {"kind": "ClusterRole", "name": "r"},
                "subjects": [{"kind": "ServiceAccount", "name": "s"}],
            },
            r"subjects\[0\].namespace: Required value",
        ),
    ],
)
def test_an_invalid_binding_is_refused(registry: Registry, binding: Json, message: str) -> None:
    with pytest.raises(ApiError, match=message) as refused:
        registry.create(CLUSTER_ROLE_BINDINGS, "", {"metadata": {"name": "x"}, **binding})
    assert refused.value.code == 422


def test_a_rule_without_verbs_is_refused(registry: Registry) -> None:
    role = {"metadata": {"name": "x"}, "rules": [{"apiGroups": [""], "resources": ["pods"]}]}
    with pytest.raises(ApiError, match=r"rules\[0\].verbs: Required value"):
        registry.create(CLUSTER_ROLES, "", role)


@pytest.mark.parametrize(("name", "is_accepted"), [("system:x", True), ("a/b", False)])
def test_role_names_may_contain_colons(registry: Registry, name: str, is_accepted: bool) -> None:
    role = {"metadata": {"name": name}}
    if is_accepted:
        assert registry.create(CLUSTER_ROLES, "", role).name == name
        return
    with pytest.raises(ApiError, match="may not contain '/'"):
        registry.create(CLUSTER_ROLES, "", role)
