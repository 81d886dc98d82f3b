"""Plays a scenario over HTTP against a scheduler, and checks what it expects."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from simcluster.tests.support.api_client import MERGE, NODES, ApiClient
from tests.gangs.checks import CHECKS, State
from tests.support.integration.auditor import Auditor

Json = dict[str, Any]

SETTLE_S = 0.15
"""What the scheduler needs to see changes of nodes and groups, before pods are made."""
STRETCH = 6
"""The scenarios' times were for a machine that does nothing else."""
_WITHIN_S = 5.0
_POLL_S = 0.03
_ALWAYS = ("untouched", "noGroupCondition")


def _collection(kind: str, api_version: str, namespace: str) -> str:
    plural = f"{kind.lower()}es" if kind.endswith("s") else f"{kind.lower()}s"
    base = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
    return f"{base}/namespaces/{namespace}/{plural}" if namespace else f"{base}/{plural}"


class Player:
    """Plays the steps of one scenario.

    Args:
        api: Client of an API server with an empty cluster.
        auditor: Follows the pods from the beginning.
    """

    def __init__(self, api: ApiClient, auditor: Auditor) -> None:
        self._api = api
        self._auditor = auditor
        self._paths: dict[tuple[str, str, str], str] = {}
        self._steps: dict[str, Callable[[Any], Awaitable[None]]] = {
            "create": self._create,
            "delete": self._delete,
            "patch": self._patch,
            "expect": self._expect,
        }

    async def play(self, steps: Sequence[Json]) -> None:
        """Do all steps.

        Raises:
            AssertionError: An expectation is not met; the text names its step.
        """
        for number, step in enumerate(steps):
            ((kind, content),) = step.items()
            try:
                await self._steps[kind](content)
            except AssertionError as error:
                raise AssertionError(f"step {number}, {content}: {error}") from None

    async def _create(self, objects: Sequence[Json]) -> None:
        if any(each["kind"] == "Pod" for each in objects):
            await asyncio.sleep(SETTLE_S)
        for body in objects:
            kind, metadata = body["kind"], body["metadata"]
            namespace = metadata.get("namespace", "")
            path = _collection(kind, body["apiVersion"], namespace)
            self._paths[kind, namespace, metadata["name"]] = f"{path}/{metadata['name']}"
            await self._api.create(path, body)

    async def _delete(self, references: Sequence[Json]) -> None:
        for reference in references:
            path = self._path(reference)
            reply = await self._api.delete(path)
            assert reply.status in (200, 202), reply.text
            if reference.get("finalizers") == "drop":
                await self._api.patch(path, {"metadata": {"finalizers": None}}, MERGE)

    async def _patch(self, change: Json) -> None:
        reply = await self._api.patch(self._path(change), change["merge"], MERGE)
        assert reply.status == 200, reply.text

    def _path(self, reference: Json) -> str:
        return self._paths[reference["kind"], reference.get("namespace", ""), reference["name"]]

    async def _expect(self, expected: Json) -> None:
        if expected["check"] in _ALWAYS:
            await self._holds(expected, expected["for"])
            return
        within = expected.get("within", _WITHIN_S) * STRETCH
        problem, loop = "", asyncio.get_running_loop()
        deadline = loop.time() + within
        while problem := await self._problem(expected):
            assert loop.time() < deadline, f"{problem}, after {within} s"
            await asyncio.sleep(_POLL_S)
        await self._holds(expected, expected.get("hold", 0.0))

    async def _holds(self, expected: Json, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while loop.time() < end:
            problem = await self._problem(expected)
            assert not problem, problem
            await asyncio.sleep(_POLL_S)

    async def _problem(self, expected: Json) -> str:
        return CHECKS[expected["check"]](expected, await self._state())

    async def _state(self) -> State:
        """The objects now."""
        groups = "/apis/scheduling.k8s.io/v1alpha2/podgroups"
        paths = ("/api/v1/pods", NODES, groups, "/apis/events.k8s.io/v1/events")
        replies = await asyncio.gather(*(self._api.get(path) for path in paths))
        pods, nodes, groups_now, events = (reply.body["items"] for reply in replies)
        return State(
            pods={_key(pod): pod for pod in pods},
            nodes={node["metadata"]["name"]: node for node in nodes},
            groups={_key(group): group for group in groups_now},
            events=events,
            violations=tuple(self._auditor.violations),
        )


def _key(obj: Json) -> str:
    return f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"
