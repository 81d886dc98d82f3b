"""SIGUSR2 logs the state and its differences from the API server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from structlog.testing import capture_logs

from stowage.api.decoding.decode import decode_pod
from stowage.engine import Engine
from stowage.operator.client.api_error import ApiError
from stowage.operator.watch.cache_comparer import ASSIGNED, CacheComparer
from stowage.state.pods.pod_class import PodClasses
from stowage.state.pods.pod_info import PodInfo, make_pod_info
from tests.support.fake_api import SILENCE, FakeApiClient, FakeTime

CLASSES = PodClasses()


def _pod(name: str, node: str = "n1") -> PodInfo:
    metadata = {"name": name, "namespace": "default", "uid": f"u-{name}"}
    text = json.dumps({"metadata": metadata, "spec": {"nodeName": node}})
    return make_pod_info(decode_pod(text.encode()), CLASSES)


class _State(Engine):
    def __init__(self, nodes: list[str], pods: list[PodInfo], bindings: list[str]) -> None:
        self._nodes, self._pods, self._bindings = nodes, pods, bindings

    def dump(self) -> dict[str, Any]:
        nodes = {name: {"exists": True, "pods": []} for name in self._nodes}
        return {"nodes": nodes, "queue": {"active": []}, "bindings": dict.fromkeys(self._bindings)}

    def node_names(self) -> list[str]:
        return self._nodes

    def pods(self) -> Iterator[PodInfo]:
        return iter(self._pods)


def _list(*names: str, token: str = "") -> dict[str, Any]:
    items = [
        {"metadata": {"name": name, "namespace": "default", "uid": f"u-{name}"}} for name in names
    ]
    return {"metadata": {"continue": token} if token else {}, "items": items}


async def _compared(state: _State, *answers: Any) -> list[dict[str, Any]]:
    with capture_logs() as lines:
        await CacheComparer(FakeApiClient(get=list(answers)), state, FakeTime().clock).run()
    return [dict(line) for line in lines]


def _mismatches(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    noise = ("event", "log_level")
    return [
        {key: value for key, value in line.items() if key not in noise}
        for line in lines
        if line["event"] == "Cache mismatch"
    ]


async def test_equal_states_are_dumped_without_a_mismatch() -> None:
    state = _State(["n1", "n2"], [_pod("p")], [])
    lines = await _compared(state, _list("n1", token="next"), _list("n2"), _list("p"))
    assert _mismatches(lines) == []
    compared = {"event": "cache compared", "nodes": 2, "pods": 1, "log_level": "info"}
    assert lines[-1] == compared
    dumped = [line["node"] for line in lines if line["event"] == "Dump of cached NodeInfo"]
    assert dumped == ["n1", "n2"]
    (queue,) = [line for line in lines if line["event"] == "Dump of scheduling queue"]
    assert queue["queue"] == {"active": []}


async def test_missing_and_redundant_objects_are_named() -> None:
    state = _State(["n1", "old"], [_pod("p"), _pod("ghost"), _pod("waiting", node="")], [])
    lines = await _compared(state, _list("n1", "new"), _list("p", "unseen"))
    assert _mismatches(lines) == [
        {"missingNodes": ["new"], "redundantNodes": ["old"]},
        {"missingPods": ["default/unseen"], "redundantPods": ["default/ghost"]},
    ]


async def test_the_comparison_waits_while_the_engine_tries_a_pod_group() -> None:
    pods, time = list[PodInfo](), FakeTime()
    state = _State(["n1"], pods, [])
    state.is_in_steps = True

    def end_attempt() -> None:
        state.is_in_steps = False
        pods.append(_pod("p"))

    time.on_sleep = end_attempt
    with capture_logs() as lines:
        await CacheComparer(FakeApiClient(get=[_list("n1"), _list("p")]), state, time.clock).run()
    assert _mismatches([dict(line) for line in lines]) == []
    assert len(time.slept) == 1


async def test_a_pod_being_bound_is_not_redundant() -> None:
    state = _State(["n1"], [_pod("p")], ["default/p"])
    assert _mismatches(await _compared(state, _list("n1"), _list())) == []


async def test_a_failed_comparison_is_logged() -> None:
    lines = await _compared(_State([], [], []), ApiError(503))
    assert lines[-1]["event"] == "cache not compared"


async def test_a_comparison_runs_in_the_background_and_only_once_at_a_time() -> None:
    client = FakeApiClient(get=[SILENCE])
    comparer = CacheComparer(client, _State([], [], []), FakeTime().clock)
    with capture_logs() as lines:
        comparer.start()
        comparer.start()
        await client.has_sent(1)
    assert [line["event"] for line in lines] == ["Dump of scheduling queue"]
    assert len(client.requests) == 1


async def test_nodes_and_assigned_pods_are_listed_in_pages() -> None:
    client = FakeApiClient(get=[_list("n1", token="more"), _list("n2"), _list()])
    await CacheComparer(client, _State(["n1", "n2"], [], []), FakeTime().clock).run()
    assert [(request.path, dict(request.params)) for request in client.requests] == [
        ("/api/v1/nodes", {"limit": "500"}),
        ("/api/v1/nodes", {"limit": "500", "continue": "more"}),
        ("/api/v1/pods", {"limit": "500", "fieldSelector": ASSIGNED}),
    ]
