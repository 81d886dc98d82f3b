"""Pods get their ServiceAccount and its token (admission plugin ServiceAccount)."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from simcluster import ClusterOptions
from simcluster.tests.contract.conftest import running
from simcluster.tests.contract.requests import PODS
from simcluster.tests.support.api_client import ApiClient, until
from simcluster.tests.support.api_servers import ApiServerUnderTest

Json = dict[str, Any]

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
MOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServerUnderTest]:
    options = ClusterOptions(with_kubelet=False, service_accounts=True)
    with running(options, tmp_path_factory.mktemp("server")) as found:
        yield found


@pytest.fixture
async def client(server: ApiServerUnderTest) -> AsyncIterator[ApiClient]:
    async with ApiClient(server.url, "") as found:
        await until(found, ACCOUNTS, "default", bool)
        yield found
        await found.delete(PODS)


def pod(**spec: Any) -> Json:
    containers = [{"name": "c", "image": "x:1"}]
    return {"metadata": {"name": "a"}, "spec": {"containers": containers, **spec}}


async def test_a_pod_gets_the_default_account_and_a_volume_with_its_token(
    client: ApiClient,
) -> None:
    spec = (await client.create(PODS, pod()))["spec"]
    assert spec["serviceAccountName"] == spec["serviceAccount"] == "default"
    [volume] = spec["volumes"]
    assert volume["name"].startswith("kube-api-access-")
    assert volume["projected"] == {
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {
                "configMap": {
                    "name": "kube-root-ca.crt",
                    "items": [{"key": "ca.crt", "path": "ca.crt"}],
                }
            },
            {
                "downwardAPI": {
                    "items": [
                        {
                            "path": "namespace",
                            "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
                        }
                    ]
                }
            },
        ],
        "defaultMode": 420,
    }
    [container] = spec["containers"]
    assert container["volumeMounts"] == [
        {"name": volume["name"], "readOnly": True, "mountPath": MOUNT_PATH}
    ]


async def test_a_pod_of_an_unknown_account_is_refused(client: ApiClient) -> None:
    reply = await client.post(PODS, pod(serviceAccountName="nobody"))
    assert (reply.status, reply.body["reason"]) == (403, "Forbidden")
    assert reply.body["message"] == (
        'pods "a" is forbidden: error looking up service account default/nobody: '
        'serviceaccount "nobody" not found'
    )


@pytest.mark.parametrize("of_account", [True, False])
async def test_a_pod_or_its_account_may_refuse_the_token(
    client: ApiClient, of_account: bool
) -> None:
    refusing = {"automountServiceAccountToken": False}
    account = {"metadata": {"name": "quiet"}, **(refusing if of_account else {})}
    await client.create(ACCOUNTS, account)
    try:
        own = {} if of_account else refusing
        spec = (await client.create(PODS, pod(serviceAccountName="quiet", **own)))["spec"]
        assert "volumes" not in spec
        assert "volumeMounts" not in spec["containers"][0]
    finally:
        await client.delete(f"{ACCOUNTS}/quiet")


async def test_a_pod_gets_the_pull_secrets_of_its_account_and_keeps_its_own_mount(
    client: ApiClient,
) -> None:
    secrets = [{"name": "registry"}]
    await client.create(ACCOUNTS, {"metadata": {"name": "puller"}, "imagePullSecrets": secrets})
    try:
        mount = {"name": "own", "mountPath": MOUNT_PATH}
        container = {"name": "c", "image": "x:1", "volumeMounts": [mount]}
        own = {"name": "own", "emptyDir": {}}
        body = pod(serviceAccountName="puller", containers=[container], volumes=[own])
        spec = (await client.create(PODS, body))["spec"]
        assert spec["imagePullSecrets"] == secrets
        assert [volume["name"] for volume in spec["volumes"]] == ["own"]
        assert spec["containers"][0]["volumeMounts"] == [mount]
    finally:
        await client.delete(f"{ACCOUNTS}/puller")
