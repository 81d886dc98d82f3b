"""The dynamic client, which finds kinds by discovery."""

import asyncio
import time
from pathlib import Path
from typing import Any

import kubernetes.aio.dynamic.exceptions
import kubernetes.aio.watch
import kubernetes.client
import pytest
from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.exceptions import (
    BadRequestError,
    ConflictError,
    NotFoundError,
    ResourceNotFoundError,
    UnprocessibleEntityError,
)

from simcluster.tests.contract.requests import deployment
from simcluster.tests.support.api_client import JSON_PATCH, MERGE

Json = dict[str, Any]
# What the package does not type.
Dynamic: Any = DynamicClient
AioDynamic: Any = kubernetes.aio.dynamic.DynamicClient
AioWatch: Any = kubernetes.aio.watch.Watch

DEFINITION: Json = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "cogs.dynamic.example.com"},
    "spec": {
        "group": "dynamic.example.com",
        "scope": "Namespaced",
        "names": {"kind": "Cog", "plural": "cogs", "singular": "cog", "shortNames": ["cg"]},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {
                    "status": {},
                    "scale": {
                        "specReplicasPath": ".spec.replicas",
                        "statusReplicasPath": ".status.replicas",
                    },
                },
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
}


@pytest.fixture
def dynamic(sync_client: kubernetes.client.ApiClient, tmp_path: Path) -> Any:
    """A dynamic client with its own discovery cache."""
    return Dynamic(sync_client, cache_file=str(tmp_path / "discovered.json"))


def _cog(name: str, **fields: Any) -> Json:
    return {
        "apiVersion": "dynamic.example.com/v1",
        "kind": "Cog",
        "metadata": {"name": name},
        **fields,
    }


def _cogs(client: Any) -> Any:
    """The resource of a custom kind, which the client's cache may not contain yet."""
    definitions = client.resources.get(
        api_version="apiextensions.k8s.io/v1", kind="CustomResourceDefinition"
    )
    name = DEFINITION["metadata"]["name"]
    try:
        definitions.get(name=name)
    except NotFoundError:
        with pytest.raises(ResourceNotFoundError):
            client.resources.get(api_version="dynamic.example.com/v1", kind="Cog")
        definitions.create(body=DEFINITION)
    for event in definitions.watch(name=name):
        conditions = (event["raw_object"].get("status") or {}).get("conditions") or ()
        if any(each["type"] == "Established" and each["status"] == "True" for each in conditions):
            break
    while True:  # discovery follows soon
        try:
            return client.resources.get(api_version="dynamic.example.com/v1", kind="Cog")
        except ResourceNotFoundError:
            time.sleep(0.05)


async def test_every_discovered_kind_can_be_listed(dynamic: Any) -> None:
    def kinds() -> set[str]:
        found = set()
        for group in dynamic.resources:
            for resource in group:
                is_list = resource.kind.endswith("List")  # the client's own, for several at once
                if not is_list and "list" in resource.verbs:
                    found.add(resource.get(limit=1).kind)
        return found

    found = await asyncio.to_thread(kinds)
    assert {"PodList", "DeploymentList", "EventList", "StorageClassList"} <= found


async def test_a_second_client_reads_the_cache_of_the_first(
    dynamic: Any, sync_client: kubernetes.client.ApiClient, tmp_path: Path
) -> None:
    def kinds() -> tuple[str, set[str]]:
        dynamic.resources.get(api_version="apps/v1", kind="Deployment")
        second = Dynamic(sync_client, cache_file=str(tmp_path / "discovered.json"))
        found = second.resources.get(name="deployments", api_version="apps/v1")
        return found.kind, set(found.subresources)

    assert await asyncio.to_thread(kinds) == ("Deployment", {"scale", "status"})


async def test_a_kind_that_was_defined_after_discovery_is_found(dynamic: Any) -> None:
    def steps() -> None:
        cogs = _cogs(dynamic)
        cogs.create(namespace="default", body=_cog("late", spec={"replicas": 1}))
        listed = cogs.get(namespace="default")
        assert [each.metadata.name for each in listed.items] == ["late"]
        assert dynamic.resources.get(short_names=["cg"]).kind == "Cog"
        events = cogs.watch(namespace="default", name="late", timeout=5)
        assert next(events)["object"].spec.replicas == 1
        assert cogs.delete(name="late", namespace="default").status == "Success"

    await asyncio.to_thread(steps)


async def test_subresources_are_read_and_written(dynamic: Any) -> None:
    def steps() -> None:
        cogs = _cogs(dynamic)
        cogs.create(namespace="default", body=_cog("parts", spec={"replicas": 1}))
        where = {"name": "parts", "namespace": "default"}
        status = {"status": {"replicas": 1}}
        assert cogs.status.patch(body=status, content_type=MERGE, **where).status.replicas == 1
        scale = cogs.scale.patch(body={"spec": {"replicas": 4}}, content_type=MERGE, **where)
        assert (scale.kind, scale.spec.replicas, scale.status.replicas) == ("Scale", 4, 1)
        assert cogs.get(**where).spec.replicas == 4

    await asyncio.to_thread(steps)


async def test_fields_of_schemaless_objects_have_separate_managers(dynamic: Any) -> None:
    def steps() -> None:
        cogs = _cogs(dynamic)
        where = {"name": "shared", "namespace": "default"}
        cogs.create(namespace="default", body=_cog("shared"))
        first = {"status": {"left": {"a": 1}, "list": [1]}}
        cogs.status.patch(body=first, content_type=MERGE, field_manager="left", **where)

        def apply(status: Json) -> Any:
            body = _cog("shared", status=status)
            return cogs.status.server_side_apply(body=body, field_manager="right", **where)

        status = apply({"right": {"b": 2}, "left": {"c": 3}}).status.to_dict()
        assert status == {"left": {"a": 1, "c": 3}, "list": [1], "right": {"b": 2}}
        with pytest.raises(ConflictError) as caught:
            apply({"left": {"a": 2}})
        assert ".status.left.a" in str(caught.value.body)
        assert apply({"left": {"c": 3}}).status.to_dict() == {
            "left": {"a": 1, "c": 3},
            "list": [1],
        }

    await asyncio.to_thread(steps)


async def test_deployments_are_patched_scaled_and_replaced(dynamic: Any) -> None:
    def steps() -> None:
        found = dynamic.resources.get(api_version="apps/v1", kind="Deployment")
        found.create(namespace="default", body=deployment("dynamic"))
        where = {"name": "dynamic", "namespace": "default"}
        assert found.patch(body={"spec": {"paused": True}}, **where).spec.paused is True
        patch = [{"op": "remove", "path": "/spec/paused"}]
        assert found.patch(body=patch, content_type=JSON_PATCH, **where).spec.paused is None
        scale = found.scale.get(**where)
        assert (scale.kind, scale.spec.replicas) == ("Scale", 1)
        body = found.get(**where).to_dict()
        body["metadata"]["labels"] = {"is": "new"}
        assert found.replace(namespace="default", body=body).metadata.labels.to_dict() == {
            "is": "new"
        }
        assert found.delete(**where).status == "Success"

    await asyncio.to_thread(steps)


async def test_errors_have_exception_classes_by_status(dynamic: Any) -> None:
    def steps() -> None:
        maps = dynamic.resources.get(api_version="v1", kind="ConfigMap")
        with pytest.raises(NotFoundError) as missing:
            maps.get(name="missing", namespace="default")
        assert missing.value.status == 404
        with pytest.raises(UnprocessibleEntityError):
            maps.create(namespace="default", body={"metadata": {"name": "B_AD"}})
        other = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "other"}}
        with pytest.raises(BadRequestError):
            maps.create(namespace="default", body=other)
        maps.create(namespace="default", body={"metadata": {"name": "twice"}})
        with pytest.raises(ConflictError):
            maps.create(namespace="default", body={"metadata": {"name": "twice"}})

    await asyncio.to_thread(steps)


async def test_items_of_a_list_are_created_one_by_one(dynamic: Any) -> None:
    def steps() -> list[str]:
        lists = dynamic.resources.get(api_version="v1", kind="ConfigMapList")
        items = [{"metadata": {"name": name}} for name in ("item-1", "item-2")]
        body = {"apiVersion": "v1", "kind": "ConfigMapList", "items": items}
        return [each.metadata.name for each in lists.create(namespace="default", body=body).items]

    assert await asyncio.to_thread(steps) == ["item-1", "item-2"]


async def test_the_asynchronous_dynamic_client_finds_and_changes_objects(
    aio_client: kubernetes.aio.client.ApiClient, tmp_path: Path
) -> None:
    client = await AioDynamic(aio_client, cache_file=str(tmp_path / "discovered.json"))
    maps = await client.resources.get(api_version="v1", kind="ConfigMap")
    await maps.create(namespace="default", body={"metadata": {"name": "aio"}})
    where = {"name": "aio", "namespace": "default"}
    changed = await maps.patch(body={"data": {"a": "b"}}, content_type=MERGE, **where)
    assert changed.data.a == "b"
    async with AioWatch() as watcher:  # closes the response of the watch
        async for event in maps.watch(namespace="default", name="aio", timeout=5, watcher=watcher):
            assert (event["type"], event["object"].data.a) == ("ADDED", "b")
            break
    with pytest.raises(kubernetes.aio.dynamic.exceptions.ResourceNotFoundError):
        await client.resources.get(api_version="no.example.com/v1", kind="None")
