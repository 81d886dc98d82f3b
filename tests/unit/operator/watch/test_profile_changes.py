"""Profiles are added and removed while pods are watched."""

from __future__ import annotations

from typing import Any

import msgspec

from stowage.api.events import PendingPodGone, PendingPodSeen
from stowage.operator.inbox import Inbox
from stowage.operator.watch.pending_pods import PendingPods
from tests.unit.operator.watch.pod_pages import handle_page

EMPTY_LIST = b'{"metadata":{"resourceVersion":"9"},"items":[]}'


def added(name: str, scheduler_name: str) -> bytes:
    metadata = {"namespace": "default", "name": name, "uid": f"uid-{name}", "resourceVersion": "5"}
    spec = {"schedulerName": scheduler_name, "containers": [{"name": "c", "image": "i"}]}
    pod = {"metadata": metadata, "spec": spec}
    return msgspec.json.encode({"type": "ADDED", "object": pod})


def seen(inbox: Inbox) -> list[str]:
    events = inbox.drain(100)
    assert all(isinstance(event, PendingPodSeen) for event in events)
    return [event.pod.metadata.name for event in events if isinstance(event, PendingPodSeen)]


def test_pods_of_an_added_profile_are_seen() -> None:
    inbox = Inbox()
    pods = PendingPods(inbox, ("stowage",))
    pods.handle_line(added("job", "batch"))
    assert seen(inbox) == []
    pods.select(("stowage", "batch"))
    pods.handle_line(added("job", "batch"))
    assert seen(inbox) == ["job"]


def test_pods_of_a_removed_profile_are_not_reported_as_gone() -> None:
    inbox, raw = Inbox(), dict[str, dict[str, Any]]()
    pods = PendingPods(inbox, ("stowage", "batch"), raw)
    pods.handle_line(added("ours", "stowage"))
    pods.handle_line(added("job", "batch"))
    pods.select(("stowage",))
    assert seen(inbox) == ["ours", "job"]
    assert list(raw) == ["uid-ours"]
    # A list without both pods reports only the pod of a remaining profile as gone.
    handle_page(pods, EMPTY_LIST)
    assert inbox.drain(100) == [PendingPodGone("default", "ours", "uid-ours")]


def test_a_pod_that_is_gone_when_its_profile_comes_back_is_reported() -> None:
    """The engine may have seen the pod after both changes, before it reports either."""
    inbox = Inbox()
    pods = PendingPods(inbox, ("stowage", "batch"))
    pods.handle_line(added("job", "batch"))
    pods.select(("stowage",))
    pods.select(("stowage", "batch"))
    handle_page(pods, EMPTY_LIST)
    assert inbox.drain(100)[1:] == [PendingPodGone("default", "job", "uid-job")]
