"""A running scheduler with extenders, each a process that answers over HTTP."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from simcluster.tests.support.api_client import NODES, PODS, ApiClient
from simcluster.tests.support.api_servers import ApiServerUnderTest
from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S, wait_until
from stowage.api.config.loading import load_configuration
from stowage.cli.composition import run_options
from stowage.operator.app import run
from stowage.operator.run_options import RunOptions

EXTENDER = Path(__file__).parents[2] / "support" / "extender_server.py"
GPU = "example.com/gpu"
PRIORITY_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"

Json = dict[str, Any]


@dataclass
class RunningExtender:
    """An extender process, and its log of requests."""

    process: subprocess.Popen[str]
    url: str
    log: Path

    def requests(self, verb: str) -> list[Json]:
        lines = self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else []
        logged = [json.loads(line) for line in lines]
        return [request["asked"] for request in logged if request["verb"] == verb]


StartExtender = Callable[..., RunningExtender]


@pytest.fixture
def extender(tmp_path: Path) -> Iterator[StartExtender]:
    """Starts extenders; stops them at the end of the test."""
    started: list[RunningExtender] = []

    def start(mode: str, *flags: str) -> RunningExtender:
        log = tmp_path / f"extender-{len(started)}.jsonl"
        process = subprocess.Popen(
            [sys.executable, str(EXTENDER), mode, f"--log={log}", *flags],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        url = f"http://127.0.0.1:{int(process.stdout.readline())}/scheduler"
        started.append(RunningExtender(process, url, log))
        return started[-1]

    yield start
    for each in started:
        each.process.kill()
        each.process.communicate()


def _options(server: ApiServerUnderTest, extenders: tuple[Json, ...]) -> RunOptions:
    configuration = load_configuration(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "extenders": [{"httpTimeout": f"{WAIT_TIMEOUT_S:g}s", **each} for each in extenders],
        }
    )
    return run_options(configuration, server.kubeconfig, None, 300.0)


@asynccontextmanager
async def _scheduling(server: ApiServerUnderTest, *extenders: Json) -> AsyncIterator[None]:
    stop = asyncio.Event()
    options = replace(
        _options(server, extenders), stop=stop, owns_process=False, shutdown_grace_s=1.0
    )
    process = asyncio.create_task(run(options))
    try:
        yield
    finally:
        stop.set()
        assert await asyncio.wait_for(process, WAIT_TIMEOUT_S) == 0


class Cluster:
    """Creates and reads nodes and pods."""

    def __init__(self, api: ApiClient) -> None:
        self._api = api

    async def add_nodes(self, *names: str) -> None:
        capacity = {"cpu": "8", "memory": "16Gi", "pods": "110"}
        for name in names:
            node = {
                "metadata": {"name": name, "annotations": {"example.com/rack": f"rack-{name}"}},
                "status": {"capacity": capacity},
            }
            await self._api.post(NODES, node)

    async def add_pod(self, name: str, spec: Json | None = None, /, **limits: str) -> None:
        resources = {"requests": limits, "limits": limits}
        container = {"name": "c", "image": "registry.k8s.io/pause:3.10", "resources": resources}
        pod = {
            "metadata": {
                "name": name,
                "namespace": "default",
                "annotations": {"example.com/for-the-extender": "yes"},
            },
            "spec": {
                "schedulerName": "stowage",
                "containers": [container],
                **(spec or {}),
            },
        }
        await self._api.post(PODS, pod)

    async def node_of(self, name: str) -> str:
        return str((await self._pod(name))["spec"].get("nodeName", ""))

    async def bound(self, name: str) -> str:
        """Wait until a pod is bound; returns the node's name."""

        async def has_node() -> bool:
            return bool(await self.node_of(name))

        await wait_until(has_node)
        return await self.node_of(name)

    async def refused(self, name: str, reason: str) -> str:
        """Wait until a condition of a pod has this reason; returns its message."""
        messages: list[str] = []

        async def has_condition() -> bool:
            conditions = (await self._pod(name))["status"].get("conditions", [])
            messages[:] = [each["message"] for each in conditions if each.get("reason") == reason]
            return bool(messages)

        await wait_until(has_condition)
        return messages[0]

    async def _pod(self, name: str) -> Json:
        return (await self._api.get(f"{PODS}/{name}")).body


@pytest.fixture
async def cluster(api: ApiClient) -> Cluster:
    """Four nodes."""
    cluster = Cluster(api)
    await cluster.add_nodes("n1", "n2", "n3", "n4")
    return cluster


@pytest.mark.parametrize("knows_nodes", [False, True], ids=["whole nodes", "node names"])
async def test_an_extender_filters_and_scores_nodes(
    api_server: ApiServerUnderTest, cluster: Cluster, extender: StartExtender, knows_nodes: bool
) -> None:
    picky = extender("picky", "--favourite=n4")
    config = {
        "urlPrefix": picky.url,
        "filterVerb": "filter",
        "prioritizeVerb": "prioritize",
        "weight": 100,
        "nodeCacheCapable": knows_nodes,
    }
    async with _scheduling(api_server, config):
        await cluster.add_pod("p")
        assert await cluster.bound("p") == "n4"
    (question,) = picky.requests("filter")
    assert question["Pod"]["metadata"]["annotations"] == {"example.com/for-the-extender": "yes"}
    if knows_nodes:
        assert (sorted(question["NodeNames"]), question["Nodes"]) == (
            ["n1", "n2", "n3", "n4"],
            None,
        )
    else:
        racks = {
            node["metadata"]["annotations"]["example.com/rack"]
            for node in question["Nodes"]["items"]
        }
        assert racks == {"rack-n1", "rack-n2", "rack-n3", "rack-n4"}
    (rating,) = picky.requests("prioritize")
    named = rating["NodeNames"] or [node["metadata"]["name"] for node in rating["Nodes"]["items"]]
    assert sorted(named) == ["n2", "n4"]


async def test_extenders_filter_in_turn_and_their_weighted_scores_are_added(
    api_server: ApiServerUnderTest, cluster: Cluster, extender: StartExtender
) -> None:
    """The last one knows nodes by name, the second one binds and is asked for GPUs only."""

    def rated(started: RunningExtender, weight: int, **more: Any) -> Json:
        verbs = {"filterVerb": "filter", "prioritizeVerb": "prioritize"}
        return {"urlPrefix": started.url, "weight": weight, **verbs, **more}

    await cluster.add_nodes("n5")
    access = (f"--server={api_server.url}", f"--token={api_server.token}")
    first = extender("picky", "--passes=123", "--favourite=n2")
    binder = extender("picky", "--passes=235", "--favourite=n3", *access)
    last = extender("picky", "--passes=123", "--favourite=n2")
    managed = [{"name": GPU, "ignoredByScheduler": True}]
    async with _scheduling(
        api_server,
        rated(first, 3),
        rated(binder, 20, bindVerb="bind", managedResources=managed),
        rated(last, 10, nodeCacheCapable=True),
    ):
        await cluster.add_pod("with-a-gpu", **{GPU: "1"})
        assert await cluster.bound("with-a-gpu") == "n3"
        await cluster.add_pod("without")
        assert await cluster.bound("without") == "n2"
    assert [request["Node"] for request in binder.requests("bind")] == ["n3"]
    assert [len(request["NodeNames"]) for request in last.requests("filter")] == [2, 3]


async def test_a_pod_that_an_extender_rejects_gets_the_extenders_message(
    api_server: ApiServerUnderTest, api: ApiClient, extender: StartExtender
) -> None:
    cluster = Cluster(api)
    await cluster.add_nodes("n1", "n3")
    async with _scheduling(
        api_server, {"urlPrefix": extender("picky").url, "filterVerb": "filter"}
    ):
        await cluster.add_pod("p")
        message = await cluster.refused("p", "Unschedulable")
        assert message.startswith("0/2 nodes are available: 2 too odd.")
        await cluster.add_nodes("n2")
        assert await cluster.bound("p") == "n2"


async def test_an_extender_binds_a_pod(
    api_server: ApiServerUnderTest, cluster: Cluster, extender: StartExtender
) -> None:
    binder = extender("picky", f"--server={api_server.url}", f"--token={api_server.token}")
    async with _scheduling(api_server, {"urlPrefix": binder.url, "bindVerb": "bind"}):
        await cluster.add_pod("p")
        node = await cluster.bound("p")
    (request,) = binder.requests("bind")
    assert (request["PodName"], request["Node"]) == ("p", node)


async def test_a_pod_stays_pending_when_the_extender_refuses_to_bind_it(
    api_server: ApiServerUnderTest, cluster: Cluster, extender: StartExtender
) -> None:
    binder = extender("denying")
    async with _scheduling(api_server, {"urlPrefix": binder.url, "bindVerb": "bind"}):
        await cluster.add_pod("p")
        assert await cluster.refused("p", "SchedulerError") == "not today"
    assert await cluster.node_of("p") == ""


async def test_the_scheduler_binds_a_pod_that_an_ignorable_extender_refuses_to_bind(
    api_server: ApiServerUnderTest, cluster: Cluster, extender: StartExtender
) -> None:
    config = {"urlPrefix": extender("denying").url, "bindVerb": "bind", "ignorable": True}
    async with _scheduling(api_server, config):
        await cluster.add_pod("p")
        assert await cluster.bound("p")


async def test_a_slow_extender_delays_no_other_pod_and_times_out(
    api_server: ApiServerUnderTest, cluster: Cluster, extender: StartExtender
) -> None:
    config = {
        "urlPrefix": extender("slow").url,
        "filterVerb": "filter",
        "httpTimeout": "500ms",
        "managedResources": [{"name": GPU, "ignoredByScheduler": True}],
    }
    async with _scheduling(api_server, config):
        await cluster.add_pod("waits", **{GPU: "1"})
        for number in range(5):
            await cluster.add_pod(f"plain-{number}")
        for number in range(5):
            await cluster.bound(f"plain-{number}")
        message = await cluster.refused("waits", "SchedulerError")
        assert message.endswith('/scheduler/filter": no answer within 0.5 s')


@pytest.mark.parametrize(
    ("mode", "complaint"),
    [
        ("garbage", "answered filter with $: <html>it works</html> (expected an Extender"),
        ("broken", "/scheduler/filter, code 500"),
        ("denying", "not today"),
    ],
)
async def test_a_failing_extender_fails_the_pod_unless_it_is_ignorable(
    api_server: ApiServerUnderTest,
    cluster: Cluster,
    extender: StartExtender,
    mode: str,
    complaint: str,
) -> None:
    failing = {"urlPrefix": extender(mode).url, "filterVerb": "filter"}
    async with _scheduling(api_server, failing):
        await cluster.add_pod("p")
        assert complaint in await cluster.refused("p", "SchedulerError")
    async with _scheduling(api_server, {**failing, "ignorable": True}):
        assert await cluster.bound("p")


async def test_an_unreachable_extender_fails_the_pod(
    api_server: ApiServerUnderTest, cluster: Cluster, port: int
) -> None:
    gone = {"urlPrefix": f"http://127.0.0.1:{port}", "filterVerb": "filter"}
    async with _scheduling(api_server, gone):
        await cluster.add_pod("p")
        assert "Cannot connect to host 127.0.0.1" in await cluster.refused("p", "SchedulerError")


async def test_the_scores_of_failing_extenders_are_ignored(
    api_server: ApiServerUnderTest, cluster: Cluster, extender: StartExtender
) -> None:
    def scoring(mode: str, *flags: str) -> Json:
        url = extender(mode, *flags).url
        return {"urlPrefix": url, "prioritizeVerb": "prioritize", "weight": 100}

    async with _scheduling(
        api_server, scoring("garbage"), scoring("broken"), scoring("picky", "--favourite=n3")
    ):
        await cluster.add_pod("p")
        assert await cluster.bound("p") == "n3"


@pytest.mark.parametrize("knows_pods", [False, True], ids=["whole victims", "UIDs"])
async def test_an_extender_chooses_the_node_of_a_preemption(
    api: ApiClient,
    api_server: ApiServerUnderTest,
    cluster: Cluster,
    extender: StartExtender,
    knows_pods: bool,
) -> None:
    await api.create(PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 1000})
    picky = extender("picky", "--favourite=n3")
    config = {"urlPrefix": picky.url, "preemptVerb": "preempt", "nodeCacheCapable": knows_pods}
    async with _scheduling(api_server, config):
        for name in ("a", "b", "c", "d"):
            await cluster.add_pod(name, {"terminationGracePeriodSeconds": 0}, cpu="8")
        places = {await cluster.bound(name): name for name in ("a", "b", "c", "d")}
        assert sorted(places) == ["n1", "n2", "n3", "n4"]
        await cluster.add_pod("p", {"priorityClassName": "high"}, cpu="8")
        assert await cluster.bound("p") == "n3"
        victim = places["n3"]
        assert (await api.get(f"{PODS}/{victim}")).status == 404
    (asked,) = picky.requests("preempt")
    assert asked["Pod"]["metadata"]["name"] == "p"
    by_node = asked["NodeNameToMetaVictims" if knows_pods else "NodeNameToVictims"]
    assert sorted(by_node) == ["n1", "n2", "n3", "n4"]
    if not knows_pods:
        (shown,) = by_node["n3"]["Pods"]
        assert shown["metadata"]["annotations"] == {"example.com/for-the-extender": "yes"}
