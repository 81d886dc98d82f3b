"""Lists and Kopf's watch events of pending pods become events of the engine."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from stowage.api.events import Event, ObjectInvalid, PendingPodGone, PendingPodSeen
from stowage.operator.inbox import Inbox
from stowage.operator.watch.pending_pods import PendingPods, pending_pods_selector
from tests.support.fake_api import FakeTime
from tests.unit.operator.watch.pod_pages import handle_page


class _Watch:
    """Pending pods of two profiles, and the events in the inbox."""

    def __init__(self) -> None:
        self.inbox = Inbox()
        self.pods = PendingPods(self.inbox, ("stowage", "batch"))

    def listed(self, *uids: str, version: int = 10) -> None:
        self.page(list(uids), version=version)

    def page(self, uids: list[str], *, version: int, first: bool = True, more: str = "") -> None:
        items = [_pod(uid, version, schedulerName="stowage") for uid in uids]
        page = {"metadata": {"resourceVersion": str(version), "continue": more}, "items": items}
        handle_page(self.pods, msgspec.json.encode(page), is_first=first)

    def event(self, kind: str, uid: str, version: int, **spec: Any) -> None:
        pod = _pod(uid, version, **{"schedulerName": "stowage", **spec})
        self.pods.handle_line(msgspec.json.encode({"type": kind, "object": pod}))

    def arrived(self) -> list[str]:
        return [_brief(event) for event in self.inbox.drain(limit=100)]


def _pod(uid: str, version: int, **spec: Any) -> dict[str, Any]:
    names = {"namespace": "default", "name": uid, "uid": uid}
    return {"metadata": names | {"resourceVersion": str(version)}, "spec": spec}


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


def test_added_and_deleted_pods_are_seen_and_gone(watch: _Watch) -> None:
    watch.listed()
    watch.event("ADDED", "a", 11)
    watch.event("MODIFIED", "a", 12)
    watch.event("DELETED", "a", 13)
    assert watch.arrived() == ["+a", "+a", "-a"]


def test_pods_of_other_schedulers_are_ignored(watch: _Watch) -> None:
    watch.listed()
    watch.event("ADDED", "a", 11, schedulerName="default-scheduler")
    watch.event("ADDED", "b", 12, schedulerName="batch")
    watch.event("DELETED", "a", 13, schedulerName="default-scheduler")
    assert watch.arrived() == ["+b"]


def test_listed_pods_are_seen_without_waiting_for_kopf(watch: _Watch) -> None:
    watch.listed("a", "b")
    assert watch.arrived() == ["+a", "+b"]
    assert watch.pods.has_synced


def test_pods_missing_from_the_next_list_are_gone(watch: _Watch) -> None:
    watch.listed("a", "b")
    watch.listed("b", version=20)
    assert watch.arrived() == ["+a", "+b", "+b", "-a"]


def test_a_list_of_several_pages_is_compared_as_a_whole(watch: _Watch) -> None:
    watch.listed("a", "b")
    watch.page(["a"], version=20, more="token")
    assert watch.arrived() == ["+a", "+b", "+a"]
    watch.page(["b"], version=20, first=False)
    assert watch.arrived() == ["+b"]


def test_a_restarted_list_is_compared_from_its_first_page(watch: _Watch) -> None:
    watch.page(["a"], version=20, more="token")
    watch.listed("b", version=30)
    assert watch.arrived() == ["+a", "+b", "-a"]


def test_an_event_older_than_the_list_is_stale(watch: _Watch) -> None:
    watch.listed("b", version=20)
    watch.event("MODIFIED", "a", 15)
    watch.event("MODIFIED", "b", 15)
    watch.event("ADDED", "c", 21)
    assert watch.arrived() == ["+b", "+c"]


def test_repeated_events_change_nothing(watch: _Watch) -> None:
    watch.listed()
    watch.event("ADDED", "a", 11)
    watch.event("MODIFIED", "a", 12)
    watch.event("ADDED", "a", 11)
    watch.event("MODIFIED", "a", 12)
    assert watch.arrived() == ["+a", "+a"]


def test_an_invalid_pod_is_reported_and_its_deletion_is_seen(watch: _Watch) -> None:
    watch.listed()
    watch.event("ADDED", "a", 11, priority="high")
    watch.event("DELETED", "a", 12)
    assert watch.arrived() == ["!a spec.priority", "-a"]


def test_an_invalid_pod_of_a_page_that_does_not_even_name_schedulers_is_reported(
    watch: _Watch,
) -> None:
    broken = {**_pod("a", 5), "spec": []}
    page = {"metadata": {"resourceVersion": "10"}, "items": [broken]}
    handle_page(watch.pods, msgspec.json.encode(page))
    (found,) = watch.arrived()
    assert found.startswith("!a ")


@pytest.mark.parametrize(("fields", "version"), [({"resourceVersion": "7"}, "7"), ({}, "")])
def test_a_line_that_does_not_even_name_its_pod_has_the_resource_version_that_it_shows(
    watch: _Watch, fields: dict[str, str], version: str
) -> None:
    line = {"type": "ADDED", "object": {"metadata": {"uid": 5, **fields}}}
    assert watch.pods.handle_line(msgspec.json.encode(line)) == version
    assert len(watch.arrived()) == 1


def test_the_deletion_of_a_pod_is_seen_although_the_pod_is_invalid(watch: _Watch) -> None:
    watch.listed("a")
    pod = _pod("a", 11, schedulerName="stowage", priority="high")
    for line in ({"object": pod, "type": "DELETED"}, {"object": pod, "type": "MODIFIED"}):
        watch.pods.handle_line(msgspec.json.encode(line))
    assert watch.arrived() == ["+a", "-a"]


def test_the_deletion_of_a_valid_pod_is_seen_however_its_line_is_written(watch: _Watch) -> None:
    watch.listed("a")
    line = {"object": _pod("a", 11, schedulerName="stowage"), "type": "DELETED"}
    assert watch.pods.handle_line(msgspec.json.encode(line)) == "11"
    assert watch.arrived() == ["+a", "-a"]


@pytest.mark.parametrize(
    ("metadata", "reported"),
    [({"name": "a", "resourceVersion": "11"}, "! metadata"), ({"uid": 5}, "! metadata.uid")],
    ids=["without a uid", "with a number as uid"],
)
def test_a_deletion_that_does_not_identify_its_pod_is_reported(
    watch: _Watch, metadata: dict[str, Any], reported: str
) -> None:
    watch.listed("a")
    line = {"type": "DELETED", "object": {"metadata": metadata}}
    watch.pods.handle_line(msgspec.json.encode(line))
    assert watch.arrived() == ["+a", reported]


def test_a_pod_that_is_invalid_in_a_later_list_is_reported_and_not_gone(watch: _Watch) -> None:
    watch.listed("a", "b")
    items = [_pod("a", 20, schedulerName="stowage", priority="high")]
    page = {"metadata": {"resourceVersion": "20"}, "items": items}
    handle_page(watch.pods, msgspec.json.encode(page))
    assert watch.arrived() == ["+a", "+b", "!a spec.priority", "-b"]


def test_pods_are_kept_whole_for_extenders_while_they_are_pending() -> None:
    kept: dict[str, dict[str, Any]] = {}
    pods = PendingPods(Inbox(), ("stowage",), kept)
    pod = _pod("a", 11, schedulerName="stowage", unknown={"x": [1]})
    pods.handle_line(msgspec.json.encode({"type": "ADDED", "object": pod}))
    assert kept == {"a": pod}
    pods.handle_line(msgspec.json.encode({"type": "DELETED", "object": pod}))
    assert kept == {}


def test_a_list_has_not_synced_before_its_last_page(watch: _Watch) -> None:
    watch.page(["a"], version=20, more="token")
    assert not watch.pods.has_synced
    watch.page([], version=20, first=False)
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
def test_the_selector_is_as_narrow_as_possible(names: tuple[str, ...], want: str) -> None:
    assert pending_pods_selector(names) == want


def test_an_event_after_the_deletion_of_its_pod_is_stale(watch: _Watch) -> None:
    watch.listed()
    watch.event("ADDED", "a", 11)
    watch.pods.handle_removal("a")
    watch.event("MODIFIED", "a", 12)
    assert watch.arrived() == ["+a", "-a"]


def test_a_pod_whose_deletion_arrives_first_is_never_seen(watch: _Watch) -> None:
    watch.listed()
    watch.pods.handle_removal("a")
    watch.event("ADDED", "a", 11)
    assert watch.arrived() == []


def test_an_invalid_pod_is_reported_with_its_scheduler_name() -> None:
    inbox = Inbox()
    pods = PendingPods(inbox, ("stowage", "batch"))
    bad = {"schedulerName": "batch", "priority": "high"}
    foreign = {"schedulerName": "other-scheduler", "priority": "high"}
    items = [
        {"metadata": {"name": name, "uid": name, "namespace": "d"}, "spec": spec}
        for name, spec in (("a", bad), ("b", foreign))
    ]
    body = msgspec.json.encode({"metadata": {"resourceVersion": "9"}, "items": items})
    handle_page(pods, body)
    pod = items[0] | {"metadata": items[0]["metadata"] | {"resourceVersion": "10"}}
    pods.handle_line(msgspec.json.encode({"type": "MODIFIED", "object": pod}))
    found = [event for event in inbox.drain(9) if isinstance(event, ObjectInvalid)]
    assert [(event.uid, event.scheduler_name) for event in found] == [("a", "batch")] * 2


def test_the_silence_of_the_watch_is_measured_since_the_start_or_the_last_list() -> None:
    time = FakeTime()
    pods = PendingPods(Inbox(), ("stowage",), monotonic=time.monotonic)
    time.now += 5.0
    assert pods.idle_s == 5.0
    handle_page(pods, b'{"metadata": {"resourceVersion": "9"}, "items": []}')
    time.now += 2.0
    assert (pods.idle_s, pods.last_activity_at) == (2.0, 1005.0)
