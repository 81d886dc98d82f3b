"""Objects that are too large for etcd."""

import base64
from typing import Any

import pytest

from simcluster.tests.contract.requests import CONFIG_MAPS, PODS, SECRETS
from simcluster.tests.support.api_client import MERGE, ApiClient, Reply, config_map, pod

Json = dict[str, Any]

MIB = 1024 * 1024

pytestmark = pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")


def pod_of_bytes(size: int) -> Json:
    large = pod()
    large["spec"]["containers"][0]["env"] = [{"name": "LARGE", "value": "x" * size}]
    return large


def assert_too_large(reply: Reply) -> None:
    assert (reply.status, reply.body["message"]) == (500, "etcdserver: request is too large")
    assert "reason" not in reply.body
    assert "details" not in reply.body


async def test_an_object_over_etcds_limit_is_refused(api: ApiClient) -> None:
    assert_too_large(await api.post(PODS, pod_of_bytes(MIB * 8 // 5)))
    assert (await api.get(f"{PODS}/a")).status == 404


async def test_an_object_longer_than_a_message_to_etcd_is_refused(api: ApiClient) -> None:
    reply = await api.post(PODS, pod_of_bytes(MIB * 5 // 2))
    assert (reply.status, "reason" in reply.body) == (500, False)
    why = "trying to send message larger than max ("
    assert reply.body["message"].startswith(f"rpc error: code = ResourceExhausted desc = {why}")
    assert reply.body["message"].endswith(" vs. 2097152)")


async def test_an_object_does_not_grow_over_etcds_limit(api: ApiClient) -> None:
    created = await api.create(PODS, pod_of_bytes(MIB * 7 // 5))
    patch = {"metadata": {"annotations": {"large": "x" * 200_000}}}
    assert_too_large(await api.patch(f"{PODS}/a", patch, MERGE))
    now = (await api.get(f"{PODS}/a")).body
    assert now["metadata"]["resourceVersion"] == created["metadata"]["resourceVersion"]


async def test_a_dry_run_does_not_ask_etcd(api: ApiClient) -> None:
    assert (await api.post(f"{PODS}?dryRun=All", pod_of_bytes(MIB * 8 // 5))).status == 201


async def test_what_is_shorter_in_protobuf_than_in_json_is_kept(api: ApiClient) -> None:
    """A Secret of 1 MiB is 1.33 MiB of base64 in JSON."""
    secret = {
        "metadata": {"name": "a", "annotations": {"large": "x" * 250_000}},
        "data": {"a": base64.b64encode(b"x" * (MIB - 100)).decode()},
    }
    assert (await api.post(SECRETS, secret)).status == 201


async def test_the_largest_config_map_is_kept(api: ApiClient) -> None:
    assert (await api.post(CONFIG_MAPS, config_map(data="x" * (MIB - 100)))).status == 201
