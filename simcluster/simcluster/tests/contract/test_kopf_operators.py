"""Kopf operators: their handlers see and change custom and built-in resources."""

import asyncio
import queue
from collections.abc import AsyncIterator
from typing import Any

import kopf
import pytest

from simcluster.tests.contract.operators import operator
from simcluster.tests.contract.requests import DEPLOYMENTS, PODS, deployment
from simcluster.tests.support.api_client import (
    MERGE,
    NODES,
    ApiClient,
    expect_gone,
    node,
    pod,
    until,
)
from simcluster.tests.support.api_servers import ApiServerUnderTest
from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S

Json = dict[str, Any]

GROUP = "kopf.example.com"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GEARS = f"/apis/{GROUP}/v1/namespaces/default/gears"
PEERINGS = "/apis/kopf.dev/v1/clusterkopfpeerings"
FINALIZER = "kopf.zalando.org/KopfFinalizerMarker"
LAST_HANDLED = "kopf.zalando.org/last-handled-configuration"
_KEPT = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def _definition(
    group: str, plural: str, kind: str, *, scope: str = "Namespaced", **version: Any
) -> Json:
    schema = {"type": "object", "properties": {"spec": _KEPT, "status": _KEPT}}
    served = {"name": "v1", "served": True, "storage": True, **version}
    return {
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"kind": kind, "plural": plural},
            "versions": [{**served, "schema": {"openAPIV3Schema": schema}}],
        },
    }


async def _defined(http: ApiClient, body: Json) -> None:
    name = body["metadata"]["name"]
    if (await http.get(f"{DEFINITIONS}/{name}")).status == 404:
        await http.create(DEFINITIONS, body)
    await until(http, DEFINITIONS, name, _is_established)


def _is_established(found: Json) -> bool:
    conditions = found.get("status", {}).get("conditions") or ()
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


@pytest.fixture
async def gears(http: ApiClient) -> AsyncIterator[ApiClient]:
    """A client of a server that serves gears; all gears are deleted after the test."""
    await _defined(http, _definition(GROUP, "gears", "Gear", subresources={"status": {}}))
    yield http
    for found in (await http.get(GEARS)).body["items"]:
        path = f"{GEARS}/{found['metadata']['name']}"
        await http.request("PATCH", path, {"metadata": {"finalizers": None}}, MERGE)
        await http.delete(path)


def gear(name: str, **spec: Any) -> Json:
    """A small custom resource."""
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Gear",
        "metadata": {"name": name},
        "spec": spec,
    }


class Seen:
    """Records the calls of handlers in their order."""

    def __init__(self) -> None:
        self._told: queue.Queue[tuple[Any, ...]] = queue.Queue()

    def record(self, *what: Any) -> None:
        self._told.put(what)

    async def expect(self, *what: Any) -> None:
        """Wait until a handler has recorded this call; earlier calls are skipped."""
        heard: list[tuple[Any, ...]] = []
        while not heard or heard[-1] != what:
            heard.append(await asyncio.to_thread(self._told.get, timeout=WAIT_TIMEOUT_S))


async def test_handlers_are_called_for_the_changes_of_a_resource(
    gears: ApiClient, shared_server: ApiServerUnderTest
) -> None:
    seen = Seen()

    def register(registry: Any) -> None:
        @kopf.on.create("gears", registry=registry)
        def made(name: str, retry: int, patch: Any, **_: Any) -> None:
            if retry == 0:
                raise kopf.TemporaryError("not yet", delay=0.05)
            patch.metadata.labels["is"] = "made"
            patch.status["teeth"] = 7
            seen.record("made", name, retry)

        @kopf.on.update("gears", field="spec.size", registry=registry)
        def changed(old: Any, new: Any, **_: Any) -> None:
            seen.record("changed", old, new)

        @kopf.on.field("gears", field="metadata.labels.is", registry=registry)
        def labelled(new: Any, **_: Any) -> None:
            seen.record("labelled", new)

        @kopf.on.delete("gears", registry=registry)
        def gone(name: str, **_: Any) -> None:
            seen.record("gone", name)

    with operator(shared_server, register):
        await gears.create(GEARS, gear("life", size=1))
        await seen.expect("made", "life", 1)
        await seen.expect("labelled", "made")
        kept = await until(gears, GEARS, "life", lambda found: "teeth" in found.get("status", {}))
        assert kept["metadata"]["finalizers"] == [FINALIZER]
        await gears.request("PATCH", f"{GEARS}/life", {"spec": {"size": 2}}, MERGE)
        await seen.expect("changed", 1, 2)
        await until(gears, GEARS, "life", lambda found: '"size":2' in _last_handled(found))
        async with expect_gone(gears, GEARS, "life"):
            await gears.delete(f"{GEARS}/life")
            await seen.expect("gone", "life")


def _last_handled(found: Json) -> str:
    text: str = found["metadata"].get("annotations", {}).get(LAST_HANDLED, "")
    return text


async def test_an_operator_that_restarts_continues_its_work(
    gears: ApiClient, shared_server: ApiServerUnderTest
) -> None:
    seen = Seen()

    def register(registry: Any) -> None:
        @kopf.on.resume("gears", registry=registry)
        @kopf.on.create("gears", registry=registry)
        @kopf.on.update("gears", registry=registry)
        def handled(reason: str, spec: Any, **_: Any) -> None:
            seen.record(str(reason), spec["size"])

    with operator(shared_server, register):
        await gears.create(GEARS, gear("left", size=1))
        await seen.expect("create", 1)
        await until(gears, GEARS, "left", lambda found: bool(_last_handled(found)))
    with operator(shared_server, register):
        await seen.expect("resume", 1)
    await gears.request("PATCH", f"{GEARS}/left", {"spec": {"size": 5}}, MERGE)
    with operator(shared_server, register):
        await seen.expect("update", 5)


async def test_timers_and_daemons_run_while_a_resource_exists(
    gears: ApiClient, shared_server: ApiServerUnderTest
) -> None:
    seen = Seen()

    def register(registry: Any) -> None:
        @kopf.timer("gears", interval=0.05, registry=registry)
        def ticked(patch: Any, status: Any, **_: Any) -> None:
            patch.status["ticks"] = status.get("ticks", 0) + 1

        @kopf.daemon("gears", registry=registry)
        async def lived(stopped: Any, name: str, **_: Any) -> None:
            seen.record("began", name)
            await stopped.wait()
            seen.record("ended", name)

    with operator(shared_server, register):
        await gears.create(GEARS, gear("alive"))
        await seen.expect("began", "alive")
        await until(gears, GEARS, "alive", lambda found: found.get("status", {}).get("ticks") == 3)
        async with expect_gone(gears, GEARS, "alive"):
            await gears.delete(f"{GEARS}/alive")
            await seen.expect("ended", "alive")


async def test_built_in_resources_are_indexed_filtered_and_annotated(
    http: ApiClient, shared_server: ApiServerUnderTest
) -> None:
    seen = Seen()

    def register(registry: Any) -> None:
        @kopf.index(
            "", "v1", "pods", labels={"indexed": kopf.PRESENT}, id="names", registry=registry
        )
        def names(name: str, **_: Any) -> Json:
            return {"all": name}

        @kopf.on.event("", "v1", "pods", annotations={"told": "yes"}, registry=registry)
        def told(event: Any, name: str, **further: Any) -> None:
            names = further["names"]
            seen.record(event["type"] == "DELETED", name, sorted(names.get("all", ())))

        @kopf.on.create("apps", "v1", "deployments", registry=registry)
        def deployed(name: str, **_: Any) -> Json:
            seen.record("deployed", name)
            return {"has": "an answer"}

    await http.create(NODES, node("indexed"))
    first, second = pod("indexed-1"), pod("indexed-2")
    first["metadata"]["labels"] = {"indexed": "yes"}
    second["metadata"]["annotations"] = {"told": "yes"}
    await http.create(PODS, first)
    with operator(shared_server, register):
        await http.create(PODS, second)
        await seen.expect(False, "indexed-2", ["indexed-1"])
        await http.delete(f"{PODS}/indexed-2")
        await seen.expect(True, "indexed-2", ["indexed-1"])
        await http.create(DEPLOYMENTS, deployment("indexed"))
        await seen.expect("deployed", "indexed")
        kept = await until(http, DEPLOYMENTS, "indexed", lambda found: bool(_last_handled(found)))
    assert kept["metadata"]["annotations"][LAST_HANDLED]
    assert "deployed" not in kept["status"]  # a Deployment's status keeps only what it knows


async def test_an_operator_registers_in_a_peering_and_leaves_it(
    gears: ApiClient, shared_server: ApiServerUnderTest
) -> None:
    await _defined(
        gears, _definition("kopf.dev", "clusterkopfpeerings", "ClusterKopfPeering", scope="Cluster")
    )
    if (await gears.get(f"{PEERINGS}/contract")).status == 404:
        peering = {"apiVersion": "kopf.dev/v1", "kind": "ClusterKopfPeering"}
        await gears.create(PEERINGS, {**peering, "metadata": {"name": "contract"}})
    seen = Seen()

    def register(registry: Any) -> None:
        @kopf.on.create("gears", registry=registry)
        def made(name: str, **_: Any) -> None:
            seen.record("made", name)

    options = {"standalone": False, "clusterwide": True, "peering_name": "contract"}
    with operator(shared_server, register, **options, priority=10):
        await gears.create(GEARS, gear("peered"))
        await seen.expect("made", "peered")
        there = await until(gears, PEERINGS, "contract", lambda found: bool(found.get("status")))
        assert [each["priority"] for each in there["status"].values()] == [10]
    left = await until(gears, PEERINGS, "contract", lambda found: not found.get("status"))
    assert left["metadata"]["generation"] > there["metadata"]["generation"]
