"""Who a client is: tokens, anonymous requests, impersonation."""

import base64
import json
from pathlib import Path

from simcluster import ClusterOptions
from simcluster.tests.contract.conftest import running
from simcluster.tests.contract.statuses import expect_status
from simcluster.tests.support.api_client import CONFIG_MAPS, PODS, ApiClient
from simcluster.tests.support.api_servers import ApiServerUnderTest

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
RBAC = "/apis/rbac.authorization.k8s.io/v1"


async def test_a_wrong_token_is_unauthorized(shared_server: ApiServerUnderTest) -> None:
    async with ApiClient(shared_server.url, "wrong", shared_server.tls) as client:
        reply = await client.get(PODS)
    expect_status(reply, 401, "Unauthorized", "Unauthorized")
    assert reply.headers["Audit-Id"]
    # The request gets no priority before its user is known.
    assert not [name for name in reply.headers if name.startswith("X-Kubernetes-Pf-")]


async def test_a_wrong_token_is_unauthorized_where_no_token_is_needed(tmp_path: Path) -> None:
    with running(ClusterOptions(with_kubelet=False, with_controllers=False), tmp_path) as server:
        async with ApiClient(server.url, "wrong") as client:
            expect_status(await client.get(PODS), 401, "Unauthorized", "Unauthorized")
        async with ApiClient(server.url, "") as client:
            assert (await client.get(PODS)).status == 200
            await client.create(ACCOUNTS, {"metadata": {"name": "robot"}})
            issued = (await client.post(f"{ACCOUNTS}/robot/token", {})).body["status"]["token"]
        async with ApiClient(server.url, issued) as client:
            assert (await client.get(PODS)).status == 200


async def test_a_request_without_a_token_is_anonymous(anonymous: ApiClient) -> None:
    forbidden = 'User "system:anonymous" cannot'
    reply = await anonymous.get(PODS)
    where = 'list resource "pods" in API group "" in the namespace "default"'
    expect_status(reply, 403, "Forbidden", f"pods is forbidden: {forbidden} {where}")
    assert reply.body["details"] == {"kind": "pods"}
    reply = await anonymous.get("/api/v1/nodes/n")
    where = 'get resource "nodes" in API group "" at the cluster scope'
    expect_status(reply, 403, "Forbidden", f'nodes "n" is forbidden: {forbidden} {where}')
    assert reply.body["details"] == {"name": "n", "kind": "nodes"}
    reply = await anonymous.get("/apis")
    expect_status(reply, 403, "Forbidden", f'forbidden: {forbidden} get path "/apis"')
    assert reply.body["details"] == {}


async def role(http: ApiClient, name: str, resources: list[str]) -> None:
    """Let a service account of the default namespace read some resources there."""
    rules = [{"apiGroups": [""], "resources": resources, "verbs": ["get", "list"]}]
    path = f"{RBAC}/namespaces/default"
    await http.create(f"{path}/roles", {"metadata": {"name": name}, "rules": rules})
    binding = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}],
    }
    await http.create(f"{path}/rolebindings", binding)


async def test_a_requested_token_authenticates_the_service_account(
    http: ApiClient, shared_server: ApiServerUnderTest
) -> None:
    await http.create(ACCOUNTS, {"metadata": {"name": "reader"}})
    await role(http, "reader", ["pods"])
    request = {"spec": {"expirationSeconds": 3600}}
    issued = await http.create(f"{ACCOUNTS}/reader/token", request)
    assert issued["kind"] == "TokenRequest"
    token = issued["status"]["token"]
    payload = token.split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    assert claims["sub"] == "system:serviceaccount:default:reader"
    async with ApiClient(shared_server.url, token, shared_server.tls) as client:
        assert (await client.get(PODS)).status == 200
        refused = await client.get(CONFIG_MAPS)
        review = await client.create("/apis/authentication.k8s.io/v1/selfsubjectreviews", {})
    assert (refused.status, refused.body["reason"]) == (403, "Forbidden")
    assert refused.body["message"] == (
        'configmaps is forbidden: User "system:serviceaccount:default:reader" cannot list '
        'resource "configmaps" in API group "" in the namespace "default"'
    )
    assert set(review) == {"kind", "apiVersion", "metadata", "status"}
    assert review["metadata"]["creationTimestamp"]
    assert "system:serviceaccounts:default" in review["status"]["userInfo"]["groups"]


async def test_a_token_request_with_a_too_short_lifetime_is_refused(http: ApiClient) -> None:
    await http.create(ACCOUNTS, {"metadata": {"name": "hasty"}})
    reply = await http.post(f"{ACCOUNTS}/hasty/token", {"spec": {"expirationSeconds": 10}})
    assert (reply.status, reply.body["reason"]) == (422, "Invalid")
    assert "may not specify a duration less than 10 minutes" in reply.body["message"]


async def test_an_administrator_impersonates_a_user(http: ApiClient) -> None:
    reply = await http.request("GET", PODS, headers={"Impersonate-User": "jane"})
    assert reply.status == 403
    assert 'User "jane" cannot list resource "pods"' in reply.body["message"]
    headers = {"Impersonate-User": "jane", "Impersonate-Group": "system:masters"}
    assert (await http.request("GET", PODS, headers=headers)).status == 200


async def test_impersonation_needs_permission(anonymous: ApiClient) -> None:
    reply = await anonymous.request("GET", PODS, headers={"Impersonate-User": "jane"})
    expect_status(
        reply,
        403,
        "Forbidden",
        'users "jane" is forbidden: User "system:anonymous" cannot impersonate resource "users" '
        'in API group "" at the cluster scope',
    )
