"""A plain HTTP client for tests of single requests."""

import asyncio
import io
import json
import re
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import Any, NamedTuple, Self

import aiohttp
from multidict import CIMultiDictProxy

from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S

Json = dict[str, Any]

PODS = "/api/v1/namespaces/default/pods"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
NODES = "/api/v1/nodes"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
_JSON = "application/json"
STRATEGIC = "application/strategic-merge-patch+json"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"


_WARNING = re.compile(r'299 - ("(?:[^"\\]|\\.)*")')


class Reply(NamedTuple):
    """Status, decoded body, headers and raw text of an answer."""

    status: int
    body: Json
    headers: "CIMultiDictProxy[str]"
    text: str

    @property
    def warnings(self) -> list[str]:
        """The texts of the Warning headers, each of which may have several."""
        values = ", ".join(self.headers.getall("Warning", []))
        return [json.loads(text) for text in _WARNING.findall(values)]


class Watch:
    """An open watch."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.status = response.status
        self._response = response

    async def next(self, timeout_s: float = WAIT_TIMEOUT_S) -> Json:
        """The next event.

        Raises:
            EOFError: the stream ended.
        """
        line = await asyncio.wait_for(self._response.content.readline(), timeout_s)
        if not line:
            raise EOFError("the watch ended")
        event: Json = json.loads(line)
        return event

    async def take(self, count: int) -> list[Json]:
        """The next ``count`` events."""
        return [await self.next() for _ in range(count)]

    async def rest(self) -> list[Json]:
        """All events until the stream ends."""
        events = []
        while True:
            try:
                events.append(await self.next())
            except EOFError:
                return events


class ApiClient:
    """Talks JSON to one API server."""

    def __init__(self, url: str, token: str, tls: ssl.SSLContext | None = None) -> None:
        self._url = url
        self._token = token
        self._tls = tls

    async def __aenter__(self) -> Self:
        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        connector = aiohttp.TCPConnector(ssl=self._tls if self._tls is not None else True)
        self._session = aiohttp.ClientSession(
            self._url,
            headers=headers,
            connector=connector,
            timeout=aiohttp.ClientTimeout(total=WAIT_TIMEOUT_S),
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def request(
        self,
        method: str,
        path: str,
        body: object = None,
        content_type: str = "application/json",
        accept: str = "application/json",
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> Reply:
        """Send a request and read its answer; a body of bytes is sent unchanged."""
        headers = {"Accept": accept, **headers}
        data = None
        if body is not None:
            headers["Content-Type"] = content_type
            data = io.BytesIO(body if isinstance(body, bytes) else json.dumps(body).encode())
        async with self._session.request(method, path, data=data, headers=headers) as response:
            text = await response.text()
            decoded = json.loads(text) if text and response.content_type == _JSON else {}
            return Reply(response.status, decoded, response.headers, text)

    async def get(self, path: str, accept: str = "application/json") -> Reply:
        """GET."""
        return await self.request("GET", path, accept=accept)

    async def post(self, path: str, body: object) -> Reply:
        """POST."""
        return await self.request("POST", path, body)

    async def put(self, path: str, body: object) -> Reply:
        """PUT."""
        return await self.request("PUT", path, body)

    async def patch(self, path: str, body: object, content_type: str = STRATEGIC) -> Reply:
        """PATCH."""
        return await self.request("PATCH", path, body, content_type)

    async def delete(self, path: str, body: object = None) -> Reply:
        """DELETE."""
        return await self.request("DELETE", path, body)

    async def create(self, path: str, body: Json) -> Json:
        """POST that must succeed."""
        reply = await self.post(path, body)
        assert reply.status == 201, reply.text
        return reply.body

    async def bind(self, pod: str, node: str) -> Reply:
        """Bind a pod of the default namespace."""
        return await self.post(f"{PODS}/{pod}/binding", binding(pod, node))

    async def revision(self, path: str = PODS) -> str:
        """The current resourceVersion."""
        version: str = (await self.get(path)).body["metadata"]["resourceVersion"]
        return version

    @asynccontextmanager
    async def watch(
        self, path: str, query: str = "", accept: str = "application/json"
    ) -> AsyncIterator[Watch]:
        """Open a watch."""
        url = f"{path}?watch=1&{query}"
        async with self._session.get(url, headers={"Accept": accept}) as response:
            yield Watch(response)


async def until(api: ApiClient, path: str, name: str, holds: Callable[[Json], bool]) -> Json:
    """Watch an object until ``holds`` is true for it; returns the object."""
    async with api.watch(path, f"fieldSelector=metadata.name={name}") as watch:
        while True:
            event = await watch.next()
            if event["type"] != "DELETED" and holds(event["object"]):
                found: Json = event["object"]
                return found


@asynccontextmanager
async def expect_gone(api: ApiClient, path: str, name: str) -> AsyncIterator[None]:
    """Wait until an object is deleted that the block deletes."""
    async with api.watch(path, f"fieldSelector=metadata.name={name}") as watch:
        assert (await watch.next())["type"] == "ADDED"
        yield
        while (await watch.next())["type"] != "DELETED":
            pass


def pod(name: str = "a", **spec: Any) -> Json:
    """A small pod."""
    container = {"name": "c", "image": "registry.example/app:1"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"containers": [container], "schedulerName": "nobody", **spec},
    }


def config_map(name: str = "a", **data: str) -> Json:
    """A ConfigMap."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": data or {"a": "b"},
    }


def node(name: str = "n", zone: str = "z1") -> Json:
    """A ready node in a zone."""
    labels = {"topology.kubernetes.io/zone": zone, "topology.kubernetes.io/region": "r"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {
            "capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    }


def binding(pod_name: str, node_name: str, **metadata: Any) -> Json:
    """A Binding."""
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": pod_name, **metadata},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node_name},
    }


def eviction(pod_name: str) -> Json:
    """An Eviction."""
    return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod_name}}
