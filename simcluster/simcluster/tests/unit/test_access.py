"""Authentication and authorization: 401, 403 and access reviews."""

from pathlib import Path
from typing import Any

import pytest

from simcluster.apiserver.errors import ApiError
from simcluster.apiserver.paths import Review
from simcluster.auth.access import Access, AccessOptions
from simcluster.auth.bootstrap_roles import make_bootstrap_roles
from simcluster.auth.reviews import review
from simcluster.auth.users import (
    ADMINISTRATOR,
    ANONYMOUS,
    User,
    parse_token_file,
    service_account_user,
)
from simcluster.clock import Clock
from simcluster.store.registry import Registry
from simcluster.store.store import Store

Json = dict[str, Any]

ROBOT = service_account_user("a", "robot")


def guarded(*, rbac: bool = True) -> Access:
    """Access to a cluster with an administrator, a robot and the roles of every cluster."""
    registry = Registry(Store(), Clock(lambda: 0.0))
    make_bootstrap_roles(registry)
    options = AccessOptions(token="secret", users={"robot-token": ROBOT}, rbac=rbac)
    return Access(options, registry.store, registry.clock)


def refusal(method: str, path: str) -> ApiError:
    with pytest.raises(ApiError) as refused:
        guarded().check(ROBOT, method, path, {})
    return refused.value


def test_tokens_identify_users() -> None:
    access = guarded()
    assert access.authenticate("Bearer secret") == ADMINISTRATOR
    assert access.authenticate("Bearer robot-token") == ROBOT
    with pytest.raises(ApiError, match="Unauthorized"):
        access.authenticate("Bearer wrong")


def test_the_scheme_of_a_token_is_in_any_case() -> None:
    access = guarded()
    assert access.authenticate("bearer robot-token") == ROBOT
    assert access.authenticate("BEARER robot-token") == ROBOT


def test_credentials_of_another_scheme_are_no_token() -> None:
    assert guarded().authenticate("Basic robot-token") == ANONYMOUS
    with pytest.raises(ApiError, match="Unauthorized"):
        guarded(rbac=False).authenticate("secret")


def test_with_rbac_a_request_without_a_token_is_anonymous() -> None:
    assert guarded().authenticate("") == ANONYMOUS
    with pytest.raises(ApiError, match="Unauthorized"):
        guarded(rbac=False).authenticate("")


def test_without_an_administrators_token_only_a_client_without_a_token_is_administrator() -> None:
    access = Access(AccessOptions(), Store(), Clock())
    assert access.authenticate("") == access.authenticate("Bearer ") == ADMINISTRATOR
    with pytest.raises(ApiError, match="Unauthorized"):
        access.authenticate("Bearer any")


def test_rbac_needs_an_administrator_token() -> None:
    with pytest.raises(ValueError, match="the administrator needs one"):
        AccessOptions(rbac=True)


USER = 'User "system:serviceaccount:a:robot" cannot'
IN_A = 'in the namespace "a"'
LEASES = "leases.coordination.k8s.io"
OF_LEASES = 'resource "leases" in API group "coordination.k8s.io"'


@pytest.mark.parametrize(
    ("method", "path", "message"),
    [
        (
            "GET",
            "/api/v1/pods",
            f'pods is forbidden: {USER} list resource "pods" in API group "" at the cluster scope',
        ),
        (
            "POST",
            "/api/v1/namespaces/a/pods/p/binding",
            f'pods "p" is forbidden: {USER} create resource "pods/binding" in API group "" {IN_A}',
        ),
        (
            "PUT",
            "/apis/coordination.k8s.io/v1/namespaces/a/leases/l",
            f'{LEASES} "l" is forbidden: {USER} update {OF_LEASES} {IN_A}',
        ),
        ("GET", "/metrics", f'forbidden: {USER} get path "/metrics"'),
    ],
)
def test_a_refusal_has_the_api_servers_message(method: str, path: str, message: str) -> None:
    error = refusal(method, path)
    assert (error.code, error.reason, error.message) == (403, "Forbidden", message)


def test_the_details_of_a_refusal_name_the_resource() -> None:
    error = refusal("PUT", "/apis/coordination.k8s.io/v1/namespaces/a/leases/l")
    assert error.details == {"name": "l", "group": "coordination.k8s.io", "kind": "leases"}


def test_every_user_can_read_discovery_and_health() -> None:
    access = guarded()
    for path in ("/api", "/apis/apps/v1", "/version"):
        access.check(ROBOT, "GET", path, {})


def asked(plural: str, spec: Json, user: User = ADMINISTRATOR, *, rbac: bool = True) -> Json:
    topic = "authentication" if plural == "tokenreviews" else "authorization"
    review_of = Review(f"{topic}.k8s.io", "v1", plural, "")
    answer = review(review_of, {"spec": spec}, user, guarded(rbac=rbac), "now")
    assert answer["spec"] == spec
    status: Json = answer["status"]
    return status


def test_a_token_review_returns_the_user_of_the_token() -> None:
    known = asked("tokenreviews", {"token": "robot-token"})
    assert known["authenticated"] is True
    assert known["user"] == {"username": ROBOT.name, "groups": list(ROBOT.groups)}
    assert "authenticated" not in asked("tokenreviews", {"token": "wrong"})


def test_access_reviews_follow_the_roles() -> None:
    version = {"nonResourceAttributes": {"verb": "get", "path": "/version"}}
    pods = {"resourceAttributes": {"verb": "list", "resource": "pods"}}
    assert asked("selfsubjectaccessreviews", version, ROBOT)["allowed"] is True
    assert asked("selfsubjectaccessreviews", pods, ROBOT) == {"allowed": False}
    assert asked("selfsubjectaccessreviews", pods)["allowed"] is True
    of_another = {"user": ROBOT.name, "groups": list(ROBOT.groups)}
    answer = asked("subjectaccessreviews", {**of_another, **version})
    assert answer["allowed"] is True
    assert answer["reason"].startswith('RBAC: allowed by ClusterRoleBinding "system:discovery"')
    assert asked("subjectaccessreviews", {**of_another, **pods})["allowed"] is False


def test_without_roles_everything_is_allowed() -> None:
    pods = {"resourceAttributes": {"verb": "list", "resource": "pods"}}
    assert asked("selfsubjectaccessreviews", pods, ROBOT, rbac=False) == {"allowed": True}


def test_a_rules_review_lists_the_rules_of_the_sender() -> None:
    status = asked("selfsubjectrulesreviews", {"namespace": "a"}, ROBOT)
    verbs = [rule["verbs"] for rule in status["resourceRules"]]
    assert verbs == [["create"], ["create"]]
    assert "/version" in status["nonResourceRules"][0]["nonResourceURLs"]


def test_a_token_file_is_read_as_kube_apiserver_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "tokens.csv"
    path.write_text('t1,ann,1\nt2,bob,2,"dev,ops"\n')
    assert parse_token_file(path) == {
        "t1": User("ann", ("system:authenticated",)),
        "t2": User("bob", ("dev", "ops", "system:authenticated")),
    }


@pytest.mark.parametrize(
    ("line", "problem"),
    [("t1,ann\n", "line 1: 2 columns"), (",ann,1\n", "line 1: expected a token and a user name")],
)
def test_the_error_for_a_token_file_has_the_line_number(
    tmp_path: Path, line: str, problem: str
) -> None:
    path = tmp_path / "tokens.csv"
    path.write_text(line)
    with pytest.raises(ValueError, match=problem):
        parse_token_file(path)
