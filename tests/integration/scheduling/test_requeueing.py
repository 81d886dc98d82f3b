"""Some requeue cases of the engine, repeated with the whole scheduler and an API server.

Each case has pods that the event requeues and pods that it does not. The engine decides about both
at once, so when the former have been tried again, the latter have been left in the queue.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from simcluster.tests.support.api_client import MERGE, NODES, PODS, ApiClient
from simcluster.tests.support.api_servers import ApiServerUnderTest
from simcluster.tests.support.timeouts import wait_until
from stowage.api.objects.meta import ApiStruct
from stowage.api.objects.pod import Pod
from tests.stories.requeue_cases import CASES
from tests.stories.requeue_cases.case import Put, RequeueCase
from tests.support.integration.running_scheduler import (
    CONFIGURATION,
    RunningScheduler,
    running_scheduler,
)

Json = dict[str, Any]

TITLES = (
    "TaintToleration: a toleration added to a pod helps only that pod",
    "TaintToleration: a node's taint becomes one that a pod tolerates",
    "NodeUnschedulable: the pod gets a toleration of cordoned nodes",
    "NodeAffinity: a node gets a label that a pod requires",
    "NodeAffinity: a matching node is added",
    "NodeResourcesFit: a node is added that is big enough for one",
    "NodeResourcesFit: a node grows big enough for one",
    "NodePorts: the pod with the same port is deleted",
    "InterPodAffinity: a placed pod gets the label of an affinity term",
    "InterPodAffinity: a placed pod that matches an anti-affinity term is deleted",
    "PodTopologySpread: a placed pod with the label is deleted",
    "SchedulingGates: the last gate is removed",
    "all plugins: a deleted pod had resources, a port and a label that others need or avoid",
)
BY_TITLE = {case.title: case for case in CASES}


class Cluster:
    """Does the steps of a case over HTTP."""

    def __init__(self, api: ApiClient) -> None:
        self._api = api

    async def create(self, obj: ApiStruct) -> None:
        await self._api.create(_collection(obj), _body(obj))

    async def apply(self, change: Any) -> None:
        obj = change.obj
        path = f"{_collection(obj)}/{obj.metadata.name}"
        if not isinstance(change, Put):
            reply = await self._api.delete(f"{path}?gracePeriodSeconds=0")
        elif (found := await self._api.get(path)).status == 404:
            reply = await self._api.post(_collection(obj), _body(obj))
        else:
            reply = await self._update(path, obj, found.body)
        assert reply.status in (200, 201), reply.text

    async def _update(self, path: str, obj: ApiStruct, found: Json) -> Any:
        """Patch the fields that cases change: labels, taints, tolerations, gates, node capacity."""
        body = _body(obj)
        labels = dict.fromkeys(found["metadata"].get("labels") or {}) | body["metadata"]["labels"]
        spec, own = body.get("spec", {}), found["spec"]
        changeable = ("taints", "unschedulable", "tolerations", "schedulingGates")
        changes = {key: spec.get(key) for key in changeable if key in spec or key in own}
        if isinstance(obj, Pod):
            # The API server adds tolerations of its own, which may not be taken away.
            changes["tolerations"] = [*(own.get("tolerations") or ()), *spec.get("tolerations", ())]
        patch = {"metadata": {"labels": labels}, "spec": changes}
        reply = await self._api.patch(path, patch, MERGE)
        if not isinstance(obj, Pod):
            reply = await self._api.patch(f"{path}/status", {"status": body["status"]}, MERGE)
        return reply


def _collection(obj: ApiStruct) -> str:
    return PODS if isinstance(obj, Pod) else NODES


def _body(obj: ApiStruct) -> Json:
    """The object as a user writes it."""
    body: Json = msgspec.to_builtins(obj)
    meta = body["metadata"]
    kept = {"name": meta["name"], "labels": meta.get("labels", {})}
    body |= {"apiVersion": "v1", "kind": type(obj).__name__, "metadata": kept}
    if isinstance(obj, Pod):
        body["spec"] |= {"schedulerName": "stowage", "automountServiceAccountToken": False}
        for container in body["spec"]["containers"]:
            for port in container.get("ports", ()):
                port["containerPort"] = port["hostPort"]
    return body


def configuration_of(case: RequeueCase) -> Json:
    """A configuration whose only profile has the plugins of the case."""
    profile: Json = {"schedulerName": "stowage"}
    if case.plugins:
        names = ("PrioritySort", "DefaultBinder", *case.plugins)
        enabled = [{"name": name} for name in names]
        profile["plugins"] = {"multiPoint": {"enabled": enabled, "disabled": [{"name": "*"}]}}
    return {**CONFIGURATION, "profiles": [profile]}


@asynccontextmanager
async def scheduler_for(
    case: RequeueCase, server: ApiServerUnderTest
) -> AsyncIterator[RunningScheduler]:
    """A running scheduler with the plugins of the case."""
    async with running_scheduler(server.kubeconfig, configuration_of(case)) as running:
        yield running


def attempts(running: RunningScheduler) -> dict[str, int]:
    """The number of attempts of each pod in the queue, by name."""
    queue = running.engine.dump()["queue"]
    return {
        each["pod"].split("/")[1]: each["attempts"] for place in queue.values() for each in place
    }


async def until(holds: Any, what: str) -> None:
    """Wait until a condition holds."""
    try:
        await wait_until(lambda: bool(holds()))
    except TimeoutError:
        raise AssertionError(what) from None


@pytest.mark.parametrize("title", TITLES)
async def test_an_event_requeues_exactly_the_pods_that_it_may_make_schedulable(
    title: str, api: ApiClient, api_server: ApiServerUnderTest
) -> None:
    case, cluster = BY_TITLE[title], Cluster(api)
    names = {pod.metadata.name for pod in case.pending}
    for obj in case.objects:
        await cluster.create(obj)
    async with scheduler_for(case, api_server) as running:
        await until(lambda: running.engine.cache_counts()["nodes"], "no node arrived")
        for pod in case.pending:
            await cluster.create(pod)
        await until(
            lambda: names <= attempts(running).keys() and running.is_idle, "not all were tried"
        )
        before = attempts(running)
        for change in case.trigger:
            await cluster.apply(change)

        def tried_again() -> set[str]:
            now = attempts(running)
            return {name for name in names if now.get(name, 99) > before[name]}

        await until(lambda: tried_again() >= case.requeued, "a pod was not tried again")
        assert tried_again() == case.requeued
