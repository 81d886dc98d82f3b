"""Python clients: kubernetes, its dynamic client, kubernetes.aio, and Kopf."""

import asyncio
import threading
from typing import Any

import kopf
import kubernetes.aio
import kubernetes.client
import kubernetes.watch
import pytest
from kubernetes.aio.leaderelection.electionconfig import Config
from kubernetes.aio.leaderelection.leaderelection import LeaderElection
from kubernetes.aio.leaderelection.resourcelock.leaselock import LeaseLock
from kubernetes.dynamic import DynamicClient

from simcluster.tests.contract.custom_objects import (
    DEFINITIONS,
    WIDGET,
    WIDGETS,
    define,
    widget,
)
from simcluster.tests.contract.operators import operator
from simcluster.tests.support.api_client import LEASES, MERGE, NODES, ApiClient, node, pod, until
from simcluster.tests.support.api_servers import ApiServerUnderTest
from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S

Json = dict[str, Any]
# What the package does not type.
Watch: Any = kubernetes.watch.Watch
AioWatch: Any = kubernetes.aio.watch.Watch
Dynamic: Any = DynamicClient

EVENTS = "/api/v1/namespaces/default/events"


@pytest.fixture
async def widgets(http: ApiClient) -> ApiClient:
    """A client of a server that serves widgets."""
    if (await http.get(f"{DEFINITIONS}/widgets.example.com")).status == 404:
        await define(http, WIDGET)
    return http


async def test_the_synchronous_client_lists_binds_and_watches(
    http: ApiClient, sync_client: kubernetes.client.ApiClient
) -> None:
    await http.create(NODES, node("sync"))
    core: Any = kubernetes.client.CoreV1Api(sync_client)
    made: Any = await asyncio.to_thread(core.create_namespaced_pod, "default", pod("sync"))
    assert made.status.phase == "Pending"
    target = {"target": {"kind": "Node", "name": "sync"}, "metadata": {"name": "sync"}}
    await asyncio.to_thread(
        core.create_namespaced_binding, "default", target, _preload_content=False
    )
    listed: Any = await asyncio.to_thread(core.list_pod_for_all_namespaces)
    assert {found.metadata.name: found.spec.node_name for found in listed.items}["sync"] == "sync"
    watch = Watch()

    def first() -> Any:
        stream = watch.stream(
            core.list_namespaced_pod,
            "default",
            field_selector="metadata.name=sync",
            timeout_seconds=5,
        )
        return next(iter(stream))

    event: Any = await asyncio.to_thread(first)
    assert (event["type"], event["object"].spec.node_name) == ("ADDED", "sync")


async def test_the_synchronous_client_raises_the_servers_error(
    sync_client: kubernetes.client.ApiClient,
) -> None:
    core = kubernetes.client.CoreV1Api(sync_client)
    with pytest.raises(kubernetes.client.ApiException) as caught:
        await asyncio.to_thread(core.read_namespaced_pod, "missing", "default")
    assert (caught.value.status, caught.value.reason) == (404, "Not Found")
    assert '"reason":"NotFound"' in str(caught.value.body).replace(" ", "")


async def test_the_dynamic_client_finds_kinds_and_changes_objects(
    widgets: ApiClient, sync_client: kubernetes.client.ApiClient
) -> None:
    def steps() -> list[str]:
        client = Dynamic(sync_client)
        found = client.resources.get(api_version="example.com/v1", kind="Widget")
        found.create(body=widget("dynamic"), namespace="default")
        changed = found.patch(
            name="dynamic", namespace="default", body={"spec": {"size": 7}}, content_type=MERGE
        )
        assert changed.spec.size == 7
        listed = found.get(namespace="default")
        deployments = client.resources.get(api_version="apps/v1", kind="Deployment")
        assert deployments.get(namespace="default").items == []
        found.delete(name="dynamic", namespace="default")
        return [item.metadata.name for item in listed.items]

    assert "dynamic" in await asyncio.to_thread(steps)


async def test_the_asynchronous_client_lists_binds_and_watches(
    http: ApiClient, aio_client: kubernetes.aio.client.ApiClient
) -> None:
    await http.create(NODES, node("aio"))
    core: Any = kubernetes.aio.client.CoreV1Api(aio_client)
    await core.create_namespaced_pod("default", pod("aio"))
    body = {"target": {"kind": "Node", "name": "aio"}, "metadata": {"name": "aio"}}
    reply = await core.create_namespaced_binding_without_preload_content("default", body)
    assert reply.status == 201
    listed = await core.list_namespaced_pod("default", field_selector="spec.nodeName=aio")
    assert [found.metadata.name for found in listed.items] == ["aio"]
    async with AioWatch() as watch:
        stream = watch.stream(
            core.list_namespaced_pod, "default", field_selector="metadata.name=aio"
        )
        async for event in stream:
            assert (event["type"], event["object"].spec.node_name) == ("ADDED", "aio")
            break


class _Lock(LeaseLock):
    """The client's lock, without the option that makes its creation fail."""

    async def create(self, name: str, namespace: str, election_record: Any) -> bool:
        body = kubernetes.aio.client.V1Lease(
            metadata=kubernetes.aio.client.V1ObjectMeta(name=name),
            spec=self.update_lease(election_record),
        )
        await self.api_instance.create_namespaced_lease(namespace, body)
        return True


async def test_the_asynchronous_client_elects_a_leader(
    http: ApiClient, aio_client: kubernetes.aio.client.ApiClient
) -> None:
    elected = asyncio.Event()

    async def started() -> None:
        elected.set()

    async def stopped() -> None:
        """Nothing to clean up."""

    lock = _Lock("election", "default", "one", aio_client)
    config = Config(lock, 15, 10, 1, started, stopped)
    running = asyncio.create_task(LeaderElection(config).run())
    try:
        await asyncio.wait_for(elected.wait(), WAIT_TIMEOUT_S)
    finally:
        running.cancel()
        await asyncio.wait([running])
    lease = (await http.get(f"{LEASES}/election")).body
    assert lease["spec"]["holderIdentity"] == "one"


async def test_a_kopf_operator_handles_a_custom_resource(
    widgets: ApiClient, shared_server: ApiServerUnderTest
) -> None:
    deleted = threading.Event()

    def register(registry: Any) -> None:
        @kopf.on.create("example.com", "v1", "widgets", id="made", registry=registry)
        def made(spec: Any, patch: Any, body: Any, **_: Any) -> Json:
            patch.status["replicas"] = spec["size"]
            kopf.info(body, reason="Built", message="it is there")
            return {"built": True}

        @kopf.on.delete("example.com", "v1", "widgets", registry=registry)
        def gone(**_: Any) -> None:
            deleted.set()

    with operator(shared_server, register):
        await widgets.create(WIDGETS, widget("kopf"))
        cared_for = await until(
            widgets,
            WIDGETS,
            "kopf",
            lambda found: found.get("status", {}).get("replicas") == 3,
        )
        assert cared_for["metadata"]["finalizers"] == ["kopf.zalando.org/KopfFinalizerMarker"]
        await until(widgets, WIDGETS, "kopf", lambda found: "made" in found.get("status", {}))
        async with asyncio.timeout(WAIT_TIMEOUT_S):
            while True:
                events = (await widgets.get(EVENTS)).body["items"]
                if any(event["reason"] == "Built" for event in events):
                    break
                await asyncio.sleep(0.05)
        async with asyncio.timeout(WAIT_TIMEOUT_S):
            await widgets.delete(f"{WIDGETS}/kopf")
            while True:
                if (await widgets.get(f"{WIDGETS}/kopf")).status == 404:
                    break
                await asyncio.sleep(0.05)
    assert deleted.is_set()
