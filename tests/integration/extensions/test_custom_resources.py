"""A plugin waits for objects of a CustomResourceDefinition."""

from __future__ import annotations

import asyncio
from typing import Any

from simcluster.tests.support.api_client import MERGE, ApiClient
from simcluster.tests.support.api_servers import ApiServerUnderTest
from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S
from stowage.framework.authoring.adapted_plugin import plugin_factory
from tests.integration.scheduling.cluster import Cluster
from tests.support.integration.running_scheduler import CONFIGURATION, running_scheduler
from tests.support.plugins.opening_hours import OpeningHours

Json = dict[str, Any]

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
HARBOURS = "/apis/example.com/v1/namespaces/default/harbours"
ENABLED = {"multiPoint": {"enabled": [{"name": "OpeningHours"}]}}
WITH_PLUGIN = {**CONFIGURATION, "profiles": [{"schedulerName": "stowage", "plugins": ENABLED}]}


def _definition() -> Json:
    spec = {"type": "object", "properties": {"open": {"type": "boolean"}}}
    schema = {"type": "object", "properties": {"spec": spec}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "harbours.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": "Harbour", "plural": "harbours"},
            "versions": [version],
        },
    }


async def _create_harbour(api: ApiClient, name: str) -> None:
    """Define harbours if need be, and create a closed one as soon as they are served."""
    await api.create(DEFINITIONS, _definition())
    harbour = {
        "apiVersion": "example.com/v1",
        "kind": "Harbour",
        "metadata": {"name": name},
        "spec": {"open": False},
    }
    async with asyncio.timeout(WAIT_TIMEOUT_S):
        while (reply := await api.post(HARBOURS, harbour)).status == 404:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    assert reply.status == 201, reply.text


async def test_an_update_of_a_custom_object_wakes_the_pod_that_the_plugin_rejected(
    api_server: ApiServerUnderTest, api: ApiClient
) -> None:
    cluster = Cluster(api)
    await cluster.add_node("n")
    await _create_harbour(api, "north")
    plugins = (plugin_factory(OpeningHours),)
    async with running_scheduler(api_server.kubeconfig, WITH_PLUGIN, plugins):
        await cluster.create("p", labels={"harbour": "north"})
        await cluster.refused("p", "harbour default/north is closed")
        reply = await api.patch(f"{HARBOURS}/north", {"spec": {"open": True}}, MERGE)
        assert reply.status == 200, reply.text
        assert await cluster.node_of("p") == "n"


async def test_a_resource_that_is_not_served_delays_no_other_pod(
    api_server: ApiServerUnderTest, api: ApiClient
) -> None:
    cluster = Cluster(api)
    await cluster.add_node("n")
    profiles = [
        {"schedulerName": "stowage"},
        {"schedulerName": "by-hours", "plugins": ENABLED},
    ]
    configuration = {**CONFIGURATION, "profiles": profiles}
    plugins = (plugin_factory(OpeningHours),)
    async with running_scheduler(api_server.kubeconfig, configuration, plugins):
        await cluster.create("p")
        assert await cluster.node_of("p") == "n"
