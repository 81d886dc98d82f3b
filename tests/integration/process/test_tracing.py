"""``stowage run`` sends traces to a collector, and does not depend on one."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import (
    TraceServiceServicer,
    add_TraceServiceServicer_to_server,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from simcluster.tests.support.api_client import NODES, PODS, ApiClient
from simcluster.tests.support.api_servers import ApiServerUnderTest
from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S, wait_until

CONFIGURATION = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
}
BINDING = "POST /api/v1/namespaces/{namespace}/pods/{name}/binding"


class _Collector(TraceServiceServicer):
    """An OTLP receiver; `port` is where it listens."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.services: set[str] = set()
        self.server = grpc.server(ThreadPoolExecutor(1))
        self.port = self.server.add_insecure_port("127.0.0.1:0")
        # grpc has no type annotations.
        add_TraceServiceServicer_to_server(self, self.server)  # type: ignore[no-untyped-call]

    def Export(  # noqa: N802 - the name in OTLP
        self, request: ExportTraceServiceRequest, context: object
    ) -> ExportTraceServiceResponse:
        for resource in request.resource_spans:
            self.services |= {
                each.value.string_value
                for each in resource.resource.attributes
                if each.key == "service.name"
            }
            self.spans += [span for scope in resource.scope_spans for span in scope.spans]
        return ExportTraceServiceResponse()

    def attempt_of(self, pod: str) -> Span | None:
        """The span of an attempt of the pod."""
        for span in self.spans:
            if span.name == "Scheduling" and _attributes(span).get("k8s.pod.name") == pod:
                return span
        return None

    def trace_of(self, pod: str) -> dict[str, Span]:
        """The spans of the pod's trace, by name."""
        root = self.attempt_of(pod)
        assert root is not None
        return {span.name: span for span in self.spans if span.trace_id == root.trace_id}


def _attributes(span: Span) -> dict[str, Any]:
    return {each.key: each.value.string_value or each.value.int_value for each in span.attributes}


@pytest.fixture
def collector() -> Iterator[_Collector]:
    collector = _Collector()
    collector.server.start()
    yield collector
    collector.server.stop(None).wait()


@asynccontextmanager
async def _scheduler(
    server: ApiServerUnderTest, folder: Path, endpoint: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    """``stowage run`` that traces everything, and exports twice a second; its log is a file."""
    tracing = {"endpoint": endpoint, "samplingRatePerMillion": 1_000_000}
    config = folder / "config.json"
    config.write_text(json.dumps({**CONFIGURATION, "tracing": tracing}))
    flags = ("--leader-elect=false", "--secure-port=0", f"--config={config}")
    with (folder / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "stowage.cli", "run", f"--kubeconfig={server.kubeconfig}"),
            *flags,
            env={**os.environ, "OTEL_BSP_SCHEDULE_DELAY": "500"},
            stdout=log,
            stderr=log,
        )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _add_node_and_pods(api: ApiClient) -> None:
    capacity = {"cpu": "8", "memory": "16Gi", "pods": "110"}
    await api.post(NODES, {"metadata": {"name": "n1"}, "status": {"capacity": capacity}})
    for name, cpu in (("fits", "1"), ("large", "100")):
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
        spec = {"schedulerName": "stowage", "containers": [container]}
        await api.post(PODS, {"metadata": {"name": name, "namespace": "default"}, "spec": spec})


async def test_a_scheduled_and_an_unschedulable_pod_are_traced(
    api_server: ApiServerUnderTest, api: ApiClient, collector: _Collector, tmp_path: Path
) -> None:
    await _add_node_and_pods(api)
    async with _scheduler(api_server, tmp_path, f"localhost:{collector.port}"):
        await wait_until(
            lambda: all(collector.attempt_of(pod) is not None for pod in ("fits", "large"))
        )
    assert collector.services == {"stowage"}
    bound, refused = collector.trace_of("fits"), collector.trace_of("large")
    assert _attributes(bound["Scheduling"])["scheduler.result"] == "scheduled"
    assert _attributes(bound["Scheduling"])["k8s.node.name"] == "n1"
    assert bound["Filter"].parent_span_id == bound["SchedulingCycle"].span_id
    assert bound[BINDING].parent_span_id == bound["BindingCycle"].span_id
    assert _attributes(bound[BINDING])["http.response.status_code"] == 201
    assert _attributes(refused["Scheduling"])["scheduler.result"] == "unschedulable"
    assert "Insufficient cpu" in _attributes(refused["Scheduling"])["scheduler.message"]
    assert "BindingCycle" not in refused


async def test_the_last_traces_are_sent_before_the_end(
    api_server: ApiServerUnderTest, api: ApiClient, collector: _Collector, tmp_path: Path
) -> None:
    async with _scheduler(api_server, tmp_path, f"localhost:{collector.port}") as process:
        await wait_until(lambda: bool(collector.spans))
        await _add_node_and_pods(api)

        async def is_bound() -> bool:
            return bool((await api.get(f"{PODS}/fits")).body["spec"].get("nodeName"))

        await wait_until(is_bound)
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), WAIT_TIMEOUT_S) == 0
    assert collector.attempt_of("fits") is not None


async def test_an_unreachable_collector_is_logged_once_and_disturbs_nothing(
    api_server: ApiServerUnderTest, api: ApiClient, tmp_path: Path
) -> None:
    await _add_node_and_pods(api)
    # Nothing listens on a port that was only reserved.
    async with _scheduler(api_server, tmp_path, "localhost:1") as process:

        def lines() -> list[dict[str, Any]]:
            return [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]

        await wait_until(lambda: any(line["event"] == "traces not exported" for line in lines()))
        pod = (await api.get(f"{PODS}/fits")).body
        assert pod["spec"]["nodeName"] == "n1"
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), WAIT_TIMEOUT_S) == 0
    (line,) = [line for line in lines() if line["event"] == "traces not exported"]
    assert line["endpoint"] == "localhost:1"
    assert "UNAVAILABLE" in line["error"]
    assert not [line for line in lines() if "opentelemetry" in line.get("logger", "")]
