"""Profiles are added and removed while pods are watched."""

from __future__ import annotations

from typing import Any

from stowage.api.events import PendingPodGone, PendingPodSeen
from stowage.operator.inbox import Inbox
from stowage.operator.watch.pending_pods import PendingPods


def pod(name: str, scheduler_name: str) -> dict[str, Any]:
    metadata = {"namespace": "default", "name": name, "uid": f"uid-{name}", "resourceVersion": "5"}
    spec = {"schedulerName": scheduler_name, "containers": [{"name": "c", "image": "i"}]}
    return {"metadata": metadata, "spec": spec}


def seen(inbox: Inbox) -> list[str]:
    events = inbox.drain(100)
    assert all(isinstance(event, PendingPodSeen) for event in events)
    return [event.pod.metadata.name for event in events if isinstance(event, PendingPodSeen)]


def test_pods_of_a_new_profile_are_taken_from_then_on() -> None:
    inbox = Inbox()
    pods = PendingPods(inbox, ("stowage",))
    pods.handle_event(None, pod("job", "batch"))
    assert seen(inbox) == []
    pods.select(("stowage", "batch"))
    pods.handle_event(None, pod("job", "batch"))
    assert seen(inbox) == ["job"]


def test_pods_of_a_profile_that_went_are_forgotten_without_being_called_gone() -> None:
    inbox, raw = Inbox(), dict[str, dict[str, Any]]()
    pods = PendingPods(inbox, ("stowage", "batch"), raw)
    pods.handle_event(None, pod("ours", "stowage"))
    pods.handle_event(None, pod("job", "batch"))
    pods.select(("stowage",))
    assert seen(inbox) == ["ours", "job"]
    assert list(raw) == ["uid-ours"]
    # A list that lacks both tells only of the one that is still ours.
    pods.handle_page(b'{"metadata":{"resourceVersion":"9"},"items":[]}', is_first=True)
    assert inbox.drain(100) == [PendingPodGone("default", "ours", "uid-ours")]
