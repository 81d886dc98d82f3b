"""The feed tells open pages what changed, at a bounded rate and with bounded memory."""

from __future__ import annotations

import gc
from sys import getsizeof
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import msgspec
import pytest

from stowage.api.events import AssignedPodGone, AssignedPodSeen, NodeGone, NodeSeen, PendingPodSeen
from stowage.api.objects.meta import ApiStruct
from stowage.console.clusters.live import LiveCluster
from stowage.console.stream.feed import LINGER_S, MAX_NODES, MAX_SAMPLE, TICK_S, Feed
from stowage.console.stream.hub import Hub, Subscriber
from stowage.console.stream.messages import HEARTBEAT_S
from tests.support.builders import make_node, make_pod
from tests.support.consoles import START_S, Clock, live_cluster


class Page:
    """An open page, and the feed that it reads; the test advances the clock."""

    def __init__(self, *objects: ApiStruct, max_decisions: int = 10_000) -> None:
        self.clock = Clock()
        self.cluster: LiveCluster = live_cluster(
            *objects, clock=self.clock, max_decisions=max_decisions
        )
        self.hub = Hub("e")
        self.feed = Feed(self.hub, self.cluster, 0.0)
        self.cluster.decided = self.feed.decided
        self.subscriber: Subscriber = self.hub.subscribe()
        self.told: list[tuple[str, Any]] = []
        self.pass_time(1.0)
        self.told.clear()

    def pass_time(self, seconds: float) -> None:
        for _ in range(round(seconds / TICK_S)):
            self.clock.now += TICK_S
            self.feed.tick(self.clock.now - START_S, self.clock.now)
            self.read()

    def read(self) -> None:
        while self.subscriber.queue.messages:
            lines = self.subscriber.queue.popleft().data.decode().splitlines()
            content = msgspec.json.decode(lines[2].removeprefix("data: "))
            self.told.append((lines[1].removeprefix("event: "), content))

    def events(self) -> list[str]:
        return [event for event, _ in self.told]

    def last(self, event: str) -> Any:
        return [content for name, content in self.told if name == event][-1]


def test_a_pod_that_gets_a_node_changes_the_node_the_queue_and_the_feed() -> None:
    page = Page(make_node("n", cpu="4"), make_node("other"), make_pod("p", cpu="1"))
    page.cluster.apply([PendingPodSeen(make_pod("q", cpu="2"))])
    page.pass_time(1.0)
    assert page.last("pending")["total"] == 2
    page.cluster.apply([AssignedPodSeen(make_pod("q", cpu="2", node="n"))])
    page.pass_time(1.0)
    (row,) = page.last("decisions")["decisions"]
    assert (row["pod"], row["node"]) == ("default/q", "n")
    nodes = page.last("nodes")
    assert (nodes["names"], nodes["pods"], nodes["permille"]["cpu"]) == (["n"], [1], [500])
    assert page.last("pending")["total"] == 1
    assert page.last("stats")["total"] == {"scheduled": 1, "unschedulable": 0, "error": 0}


def test_a_cordoned_node_is_drawn_anew() -> None:
    page = Page(make_node("n"))
    page.cluster.apply([NodeSeen(make_node("n", unschedulable=True))])
    page.pass_time(1.0)
    assert page.last("nodes")["unschedulable"] == [1]


@pytest.mark.parametrize(
    "event",
    [NodeSeen(make_node("new")), NodeGone("n"), NodeSeen(make_node("n", zone="z"))],
    ids=["added", "removed", "relabelled"],
)
def test_the_map_is_fetched_again_if_its_nodes_or_groups_change(event: Any) -> None:
    page = Page(make_node("n"))
    page.cluster.apply([event])
    page.pass_time(1.0)
    assert page.last("refetch")["what"] == ["cluster"]


def test_the_map_is_fetched_again_if_too_much_changes() -> None:
    names = [f"n{number}" for number in range(MAX_NODES + 1)]
    page = Page(*map(make_node, names))
    page.cluster.apply([AssignedPodSeen(make_pod(f"p-{name}", node=name)) for name in names])
    page.pass_time(1.0)
    assert "refetch" in page.events()
    assert "nodes" not in page.events()


def test_nothing_is_said_while_nothing_happens_but_a_ping() -> None:
    page = Page(make_node("n"))
    page.pass_time(3 * HEARTBEAT_S)
    assert page.events() == ["ping", "ping", "ping"]


def test_a_thousand_decisions_a_second_are_sampled() -> None:
    page = Page(make_node("n", pods=100_000))
    _schedule(page, 1_000, seconds=2)
    messages = [content for event, content in page.told if event == "decisions"]
    assert len(messages) <= 2 / TICK_S
    assert sum(each["since"] for each in messages) == 2_000
    assert all(len(each["decisions"]) <= MAX_SAMPLE for each in messages)
    assert len(page.told) <= 2 * (1 / TICK_S + 4)


def _schedule(page: Page, a_second: int, seconds: int) -> None:
    """Pods come, get a node, and go, some each tick."""
    each_tick = round(a_second * TICK_S)
    for tick in range(round(seconds / TICK_S)):
        names = [f"p{tick}-{number}" for number in range(each_tick)]
        page.cluster.apply([PendingPodSeen(make_pod(name)) for name in names])
        page.cluster.apply([AssignedPodSeen(make_pod(name, node="n")) for name in names])
        page.cluster.apply([AssignedPodGone("default", name, f"uid-{name}") for name in names])
        page.pass_time(TICK_S)


def test_a_page_that_is_open_for_long_does_not_grow() -> None:
    page = Page(make_node("n", pods=100_000), max_decisions=100)
    before = _bytes_kept_after(page, 320)  # until every buffer of the console is full
    grown = _bytes_kept_after(page, 320) - before
    assert grown < 320 * 4 * 100, "100 bytes for each pod: less than a pod, a row or a message"


def _bytes_kept_after(page: Page, seconds: int) -> int:
    """The size of all objects that the page, its feed and its cluster keep alive."""
    _schedule(page, 4, seconds)
    page.told.clear()
    code = (type, ModuleType, FunctionType, BuiltinFunctionType, CodeType)
    seen, todo, size = {id(page)}, [page.__dict__], 0
    while todo:
        for each in gc.get_referents(todo.pop()):
            if id(each) not in seen and not isinstance(each, code):
                seen.add(id(each))
                size += getsizeof(each)
                todo.append(each)
    return size


def test_without_pages_nothing_is_encoded_and_a_returning_page_starts_over() -> None:
    page = Page(make_node("n"))
    page.hub.unsubscribe(page.subscriber)
    page.pass_time(LINGER_S + 1)
    page.cluster.apply([AssignedPodSeen(make_pod("p", node="n"))])
    page.pass_time(2.0)
    assert page.told == []
    assert page.hub.missed_since("e-1") is None
    page.subscriber = page.hub.subscribe()
    page.cluster.apply([AssignedPodSeen(make_pod("q", node="n"))])
    page.pass_time(3.0)
    assert page.last("refetch")["what"] == ["cluster"]
    page.cluster.apply([AssignedPodSeen(make_pod("r", node="n"))])
    page.pass_time(1.0)
    assert page.last("nodes")["pods"] == [3]


def test_the_state_of_the_connection_is_told_when_it_changes() -> None:
    page = Page(make_node("n"))
    for state in ("connected", "reconnecting", "reconnecting", "connected"):
        page.feed.source_is(state, "", 1.0)
    page.read()
    assert [content["state"] for _, content in page.told] == ["reconnecting", "connected"]


def test_a_cluster_that_was_read_anew_is_fetched_again() -> None:
    page = Page(make_node("n"))
    page.feed.reloaded(2.0)
    page.read()
    assert page.told == [("reset", {"version": page.cluster.version, "why": "reloaded"})]
