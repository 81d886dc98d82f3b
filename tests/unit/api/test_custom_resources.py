from __future__ import annotations

import pytest

from stowage.api.cluster_events import ActionType, ClusterEvent, EventResource
from stowage.api.objects.custom import parse_custom_resource


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("foos.v1.example.com", "/apis/example.com/v1/foos"),
        ("foo-bars.v1beta2.a.b-c.example.com", "/apis/a.b-c.example.com/v1beta2/foo-bars"),
        ("configmaps.v1.", "/api/v1/configmaps"),
    ],
)
def test_a_resource_is_read_in_the_notation_of_kube_scheduler(text: str, path: str) -> None:
    assert parse_custom_resource(text).path == path


@pytest.mark.parametrize(
    "text", ["", "foos", "foos.v1", "Foo.v1.example.com", "example.com/v1/foos", "foos.v1.a/../b"]
)
def test_an_event_of_a_resource_in_another_notation_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected a member of EventResource or <plural>"):
        ClusterEvent(text, ActionType.ADD)


def test_the_name_of_a_known_resource_stands_for_it() -> None:
    event = ClusterEvent("Pod", ActionType.ADD)
    assert event.resource is EventResource.POD
    assert event.matches(ClusterEvent(EventResource.ASSIGNED_POD, ActionType.ADD))


def test_a_registration_matches_events_of_its_resource_and_actions() -> None:
    registered = ClusterEvent("foos.v1.example.com", ActionType.ADD | ActionType.DELETE)
    assert registered.matches(ClusterEvent("foos.v1.example.com", ActionType.ADD))
    assert not registered.matches(ClusterEvent("foos.v1.example.com", ActionType.UPDATE))
    assert not registered.matches(ClusterEvent("foos.v2.example.com", ActionType.ADD))
    assert not registered.matches(ClusterEvent(EventResource.NODE, ActionType.ADD))
