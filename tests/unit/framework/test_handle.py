from __future__ import annotations

import pytest

from stowage.api.events import Event, WaitingPodAllowed, WaitingPodRejected
from stowage.framework import Handle, WaitingPod
from tests.support.builders import make_node, make_pod
from tests.support.mirrored_cluster import MirroredCluster


def test_allowing_and_rejecting_become_events_for_the_engine() -> None:
    posted: list[Event] = []
    handle = Handle()
    handle.connect(posted.append, tuple)
    handle.allow("uid-p", "Gang")
    handle.reject("uid-q", "Gang", "the others are gone")
    assert posted == [
        WaitingPodAllowed("uid-p", "Gang"),
        WaitingPodRejected("uid-q", "Gang", "the others are gone"),
    ]


def test_the_handle_lists_the_waiting_pods_of_the_engine() -> None:
    pod = MirroredCluster([make_node("n")]).info(make_pod("p"))
    waiting = [WaitingPod(pod, "n", frozenset({"Gang"}))]
    handle = Handle()
    assert list(handle.waiting_pods()) == []
    handle.connect(lambda event: None, lambda: waiting)
    assert handle.waiting_pods() == waiting


def test_a_handle_that_is_not_connected_raises() -> None:
    with pytest.raises(RuntimeError, match=r"is not running yet.*uid-p"):
        Handle().allow("uid-p", "Gang")
