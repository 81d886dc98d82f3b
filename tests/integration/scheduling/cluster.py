"""Creates and reads the nodes and pods of scheduling tests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from simcluster.tests.support.api_client import JSON_PATCH, MERGE, NODES, PODS, ApiClient
from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S
from tests.support.integration.auditor import node_of, scheduled_condition

Json = dict[str, Any]

EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"


class Cluster:
    """Creates, changes and reads nodes and pods, as a user does."""

    def __init__(self, api: ApiClient) -> None:
        self._api = api

    async def add_node(self, name: str, labels: dict[str, str] | None = None, **spec: Any) -> None:
        capacity = {"cpu": "4", "memory": "8Gi", "pods": "110"}
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": name,
                "labels": {"kubernetes.io/hostname": name, **(labels or {})},
            },
            "spec": spec,
            "status": {"capacity": capacity, "allocatable": capacity, "conditions": [ready]},
        }
        await self._api.create(NODES, node)

    def new_pod(
        self, name: str, cpu: str = "100m", labels: dict[str, str] | None = None, **spec: Any
    ) -> Json:
        """A pod of the default namespace for our scheduler."""
        container = {
            "name": "c",
            "image": "registry.k8s.io/pause:3.10",
            "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}},
        }
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "labels": labels or {}},
            "spec": {
                "schedulerName": "stowage",
                "automountServiceAccountToken": False,
                "containers": [container],
                **spec,
            },
        }

    async def create(
        self, name: str, cpu: str = "100m", labels: dict[str, str] | None = None, **spec: Any
    ) -> None:
        await self._api.create(PODS, self.new_pod(name, cpu, labels, **spec))

    async def delete(self, name: str) -> None:
        await self._api.delete(f"{PODS}/{name}?gracePeriodSeconds=0")

    async def open_gate(self, name: str) -> None:
        patch = [{"op": "remove", "path": "/spec/schedulingGates"}]
        reply = await self._api.patch(f"{PODS}/{name}", patch, JSON_PATCH)
        assert reply.status == 200, reply.text

    async def label(self, name: str, labels: dict[str, str]) -> None:
        reply = await self._api.patch(f"{PODS}/{name}", {"metadata": {"labels": labels}}, MERGE)
        assert reply.status == 200, reply.text

    async def pod(self, name: str) -> Json:
        return (await self._api.get(f"{PODS}/{name}")).body

    async def seen(self, name: str, holds: Callable[[Json], bool]) -> Json:
        """Wait until a condition holds for a pod; returns the pod."""
        async with asyncio.timeout(WAIT_TIMEOUT_S):
            while not holds(pod := await self.pod(name)):  # noqa: ASYNC110 - polled on purpose
                await asyncio.sleep(0.02)
        return pod

    async def node_of(self, name: str) -> str:
        """Wait until a pod is bound; returns the node's name."""
        pod = await self.seen(name, lambda pod: bool(node_of(pod)))
        assert scheduled_condition(pod)[0] == "True"
        return node_of(pod)

    async def refused(self, name: str, *words: str) -> str:
        """Wait until a pod is unschedulable with these words in the message; returns the message.

        Earlier messages may differ: the scheduler may see objects in another order than they were
        created.
        """

        def is_refused(pod: Json) -> bool:
            is_unschedulable = scheduled_condition(pod) == ("False", "Unschedulable")
            return is_unschedulable and all(each in _message(pod) for each in words)

        pod = await self.seen(name, is_refused)
        assert node_of(pod) == ""
        return _message(pod)

    async def notes(self, name: str, reason: str) -> list[str]:
        """Wait until a pod has Events with this reason; returns their notes."""
        uid = (await self.pod(name))["metadata"]["uid"]
        async with asyncio.timeout(WAIT_TIMEOUT_S):
            while True:
                events = (await self._api.get(EVENTS)).body["items"]
                notes = [
                    str(event["note"])
                    for event in events
                    if event["regarding"].get("uid") == uid and event["reason"] == reason
                ]
                if notes:
                    return notes
                await asyncio.sleep(0.02)


def _message(pod: Json) -> str:
    """The message of the PodScheduled condition."""
    return next(
        str(each["message"])
        for each in pod["status"]["conditions"]
        if each["type"] == "PodScheduled"
    )
