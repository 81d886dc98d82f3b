"""Kopf's events and lists become ours, and nobody is forgotten in a gap."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from scheduler.api.events import Event, ObjectInvalid, PendingPodGone, PendingPodSeen
from scheduler.operator.inbox import Inbox
from scheduler.operator.pending_pods import PendingPods, pending_pods_selector


class _Watch:
    """Pending pods of two profiles and what became of them."""

    def __init__(self) -> None:
        self.inbox = Inbox()
        self.pods = PendingPods(self.inbox, ("stowage", "batch"))

    def listed(self, *uids: str, version: int = 10) -> None:
        self.page(list(uids), version=version)

    def page(self, uids: list[str], *, version: int, first: bool = True, more: str = "") -> None:
        items = [{"metadata": {"namespace": "default", "name": uid, "uid": uid}} for uid in uids]
        page = {"metadata": {"resourceVersion": str(version), "continue": more}, "items": items}
        self.pods.take_page(msgspec.json.encode(page), is_first=first)

    def event(self, kind: str | None, uid: str, version: int = 10, **spec: Any) -> None:
        spec = {"schedulerName": "stowage", **spec}
        metadata = {
            "namespace": "default",
            "name": uid,
            "uid": uid,
            "resourceVersion": str(version),
        }
        self.pods.take_event(kind, {"metadata": metadata, "spec": spec})

    def arrived(self) -> list[str]:
        return [_brief(event) for event in self.inbox.drain(limit=100)]


def _brief(event: Event) -> str:
    match event:
        case PendingPodSeen():
            return f"+{event.pod.metadata.name}"
        case PendingPodGone():
            return f"-{event.name}"
        case ObjectInvalid():
            return f"!{event.name} {event.field}"
        case _:
            return repr(event)


@pytest.fixture
def watch() -> _Watch:
    return _Watch()


def test_pods_are_seen_and_gone(watch: _Watch) -> None:
    watch.listed()
    watch.event("ADDED", "a", 11)
    watch.event("MODIFIED", "a", 12)
    watch.event("DELETED", "a", 13)
    assert watch.arrived() == ["+a", "+a", "-a"]


def test_pods_of_other_schedulers_are_none_of_our_business(watch: _Watch) -> None:
    watch.listed()
    watch.event("ADDED", "a", 11, schedulerName="default-scheduler")
    watch.event("ADDED", "b", 12, schedulerName="batch")
    watch.event("DELETED", "a", 13, schedulerName="default-scheduler")
    assert watch.arrived() == ["+b"]


def test_pods_that_vanished_in_a_gap_are_gone_after_the_next_list(watch: _Watch) -> None:
    watch.listed("a", "b")
    watch.event(None, "a")
    watch.event(None, "b")
    watch.listed("b", version=20)
    assert watch.arrived() == ["+a", "+b", "-a"]


def test_a_list_of_several_pages_is_compared_as_a_whole(watch: _Watch) -> None:
    watch.listed("a", "b")
    watch.event(None, "a")
    watch.event(None, "b")
    watch.page(["a"], version=20, more="token")
    assert watch.arrived() == ["+a", "+b"]
    watch.page(["b"], version=20, first=False)
    assert watch.arrived() == []


def test_an_event_from_before_a_list_without_its_pod_is_stale(watch: _Watch) -> None:
    watch.listed(version=20)
    watch.event("MODIFIED", "a", version=15)
    watch.event(None, "b", version=15)
    watch.event("ADDED", "c", version=21)
    assert watch.arrived() == ["+c"]


def test_a_pod_that_cannot_be_understood_is_reported(watch: _Watch) -> None:
    watch.listed("a")
    watch.event(None, "a", priority="high")
    assert watch.arrived() == ["!a spec.priority"]


def test_synced_means_that_every_pod_of_the_first_list_was_delivered(watch: _Watch) -> None:
    watch.page(["a"], version=20, more="token")
    watch.event(None, "a")
    watch.page(["b", "c"], version=20, first=False)
    watch.event(None, "b")
    assert not watch.pods.has_synced
    watch.event("DELETED", "c", version=21)
    assert watch.pods.has_synced


def test_an_empty_list_is_synced_at_once(watch: _Watch) -> None:
    assert not watch.pods.has_synced
    watch.listed()
    assert watch.pods.has_synced


PHASES = "spec.nodeName=,status.phase!=Succeeded,status.phase!=Failed"


@pytest.mark.parametrize(
    ("names", "want"),
    [
        (("stowage",), f"spec.schedulerName=stowage,{PHASES}"),
        (("default-scheduler",), f"spec.schedulerName=default-scheduler,{PHASES}"),
        (("stowage", "batch"), f"spec.schedulerName!=default-scheduler,{PHASES}"),
        (("stowage", "default-scheduler"), PHASES),
    ],
)
def test_the_selector_is_as_narrow_as_it_can_be(names: tuple[str, ...], want: str) -> None:
    assert pending_pods_selector(names) == want


def test_an_event_that_a_departure_overtook_is_stale(watch: _Watch) -> None:
    watch.listed()
    watch.event("ADDED", "a", 11)
    watch.pods.take_departure("a")
    watch.event("MODIFIED", "a", 12)
    assert watch.arrived() == ["+a", "-a"]


def test_a_pod_whose_departure_comes_first_is_never_seen(watch: _Watch) -> None:
    watch.listed()
    watch.pods.take_departure("a")
    watch.event("ADDED", "a", 11)
    assert watch.arrived() == []
