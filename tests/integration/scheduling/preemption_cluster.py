"""A cluster with pods of different priorities, for tests of preemption."""

from __future__ import annotations

import asyncio
from typing import Any

from simcluster.tests.support.api_client import PODS, STRATEGIC, ApiClient
from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S, wait_until
from tests.integration.scheduling.cluster import Cluster
from tests.support.integration.auditor import node_of

Json = dict[str, Any]

EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
PRIORITY_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
CLASSES = {"low": 10, "middle": 20, "high": 1000, "never-preempting": 1000}
HOSTNAME = "kubernetes.io/hostname"


class PreemptionCluster(Cluster):
    """Two nodes of 4 CPUs, and pods of different priorities."""

    def __init__(self, api: ApiClient) -> None:
        super().__init__(api)
        self.api = api

    async def prepare(self) -> None:
        for name, value in CLASSES.items():
            policy = "Never" if name == "never-preempting" else "PreemptLowerPriority"
            body = {"metadata": {"name": name}, "value": value, "preemptionPolicy": policy}
            await self.api.create(PRIORITY_CLASSES, body)
        for name in ("n1", "n2"):
            await self.add_node(name)

    async def place(
        self, name: str, node: str, cpu: str, priority_class: str = "low", **fields: Any
    ) -> str:
        """Bind a pod to a node; returns its UID. Its default grace period is 0."""
        spec = {"terminationGracePeriodSeconds": 0, "nodeSelector": {HOSTNAME: node}, **fields}
        await self.create(name, cpu, priorityClassName=priority_class, **spec)
        return await self.bound_uid(name, node)

    async def bound_uid(self, name: str, node: str) -> str:
        pod = await self.seen(name, lambda pod: bool(node_of(pod)))
        assert node_of(pod) == node
        return str(pod["metadata"]["uid"])

    async def preemptor(
        self, name: str, cpu: str, priority_class: str = "high", **fields: Any
    ) -> None:
        await self.create(name, cpu, priorityClassName=priority_class, **fields)

    async def nominated(self, name: str) -> str:
        """Wait until a pod is nominated; returns the nominated node."""
        pod = await self.seen(name, lambda pod: bool(pod["status"].get("nominatedNodeName")))
        return str(pod["status"]["nominatedNodeName"])

    async def terminating(self, name: str) -> Json:
        """Wait until a pod is terminating; returns the pod."""
        return await self.seen(name, lambda pod: "deletionTimestamp" in pod["metadata"])

    async def is_there(self, name: str) -> bool:
        answer = await self.api.get(f"{PODS}/{name}")
        return answer.status == 200 and "deletionTimestamp" not in answer.body["metadata"]

    async def gone(self, name: str) -> None:
        async def is_gone() -> bool:
            return (await self.api.get(f"{PODS}/{name}")).status == 404

        await wait_until(is_gone)

    async def preempted_event(self, uid: str) -> Json:
        """Wait for the Preempted Event of a pod."""
        async with asyncio.timeout(WAIT_TIMEOUT_S):
            while True:
                for event in (await self.api.get(EVENTS)).body["items"]:
                    if event["regarding"].get("uid") == uid and event["reason"] == "Preempted":
                        return dict(event)
                await asyncio.sleep(0.02)

    async def patch_status(self, name: str, status: Json) -> None:
        reply = await self.api.patch(f"{PODS}/{name}/status", {"status": status}, STRATEGIC)
        assert reply.status == 200, reply.text
