"""Traces of requests: span, attributes, and the header that continues the trace."""

from __future__ import annotations

from collections.abc import AsyncIterator

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, Sampler
from opentelemetry.trace import SpanKind, StatusCode

from stowage.operator.tracing.request_traces import path_template, request_tracer

BINDING = "/api/v1/namespaces/shop/pods/p/binding"


class _Client:
    """A session whose requests are traced, and a server that tells the headers it got."""

    def __init__(self, server: TestServer) -> None:
        self._server = server
        self.exporter = InMemorySpanExporter()

    async def send(
        self, method: str, path: str, sampler: Sampler = ALWAYS_ON, **params: str
    ) -> str | None:
        """The ``traceparent`` that the server got."""
        provider = TracerProvider(sampler=sampler, shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        middleware = request_tracer(provider.get_tracer("test"))
        async with (
            aiohttp.ClientSession(middlewares=[middleware]) as session,
            session.request(method, self._server.make_url(path), params=params) as response,
        ):
            return response.headers.get("Got-Traceparent")


@pytest.fixture
async def client() -> AsyncIterator[_Client]:
    async def answer(request: web.Request) -> web.Response:
        got = request.headers.get("traceparent")
        headers = {} if got is None else {"Got-Traceparent": got}
        return web.Response(status=409 if request.method == "POST" else 200, headers=headers)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    server = TestServer(app)
    async with server:
        yield _Client(server)


async def test_a_request_is_a_span_that_the_server_continues(client: _Client) -> None:
    traceparent = await client.send("PATCH", "/api/v1/namespaces/shop/pods/p/status")
    (span,) = client.exporter.get_finished_spans()
    assert span.name == "PATCH /api/v1/namespaces/{namespace}/pods/{name}/status"
    assert span.kind is SpanKind.CLIENT
    assert span.attributes == {
        "http.request.method": "PATCH",
        "url.template": "/api/v1/namespaces/{namespace}/pods/{name}/status",
        "server.address": "127.0.0.1",
        "http.response.status_code": 200,
    }
    trace, parent = format(span.context.trace_id, "032x"), format(span.context.span_id, "016x")
    assert traceparent == f"00-{trace}-{parent}-01"


async def test_a_refusal_is_an_error(client: _Client) -> None:
    await client.send("POST", BINDING)
    (span,) = client.exporter.get_finished_spans()
    assert span.attributes is not None
    assert span.attributes["http.response.status_code"] == 409
    assert span.status.status_code is StatusCode.ERROR


async def test_a_request_that_is_not_sampled_tells_the_server_so(client: _Client) -> None:
    traceparent = await client.send("GET", "/api/v1/nodes", ALWAYS_OFF)
    assert traceparent is not None
    assert traceparent.endswith("-00")
    assert client.exporter.get_finished_spans() == ()


async def test_a_watch_is_not_traced(client: _Client) -> None:
    assert await client.send("GET", "/api/v1/nodes", watch="true") is None
    assert client.exporter.get_finished_spans() == ()


@pytest.mark.parametrize(
    ("path", "template"),
    [
        ("/api/v1/nodes", "/api/v1/nodes"),
        ("/api/v1/nodes/n1", "/api/v1/nodes/{name}"),
        ("/api/v1/namespaces", "/api/v1/namespaces"),
        ("/api/v1/namespaces/shop", "/api/v1/namespaces/{name}"),
        ("/api/v1/namespaces/shop/pods", "/api/v1/namespaces/{namespace}/pods"),
        (BINDING, "/api/v1/namespaces/{namespace}/pods/{name}/binding"),
        (
            "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/stowage",
            "/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}",
        ),
        ("/k8s/clusters/c-1/api/v1/pods", "/k8s/clusters/c-1/api/v1/pods"),
        ("/k8s/clusters/c-1/api/v1/nodes/n", "/k8s/clusters/c-1/api/v1/nodes/{name}"),
        ("/apis/storage.k8s.io/v1", "/apis/storage.k8s.io/v1"),
        ("/version", "/version"),
    ],
)
def test_names_of_objects_are_not_in_the_names_of_spans(path: str, template: str) -> None:
    assert path_template(path) == template
