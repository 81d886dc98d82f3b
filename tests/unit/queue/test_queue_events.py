from __future__ import annotations

import pytest

from stowage.api.cluster_events import ActionType, ClusterEvent, EventResource
from stowage.api.objects.pod import Toleration
from stowage.queue import event_label, pod_update_events
from stowage.queue.queue_events import (
    FORCE_ACTIVATE,
    UNSCHEDULED_POD_UPDATE,
    registration_labels,
)
from stowage.state.pods.pod_info import PodInfo
from tests.unit.queue.scenario import NODE_ADD, pending


@pytest.mark.parametrize(
    ("resource", "action", "label"),
    [
        (EventResource.NODE, ActionType.ADD, "NodeAdd"),
        (EventResource.ASSIGNED_POD, ActionType.DELETE, "AssignedPodDelete"),
        (EventResource.UNSCHEDULED_POD, ActionType.UPDATE, "UnschedulablePodUpdate"),
        (EventResource.UNSCHEDULED_POD, ActionType.UPDATE_POD_OTHER, "UnschedulablePodUpdate"),
        (EventResource.NODE, ActionType.UPDATE_NODE_TAINT, "NodeUpdateNodeTaint"),
        (
            EventResource.NODE,
            ActionType.UPDATE_NODE_TAINT | ActionType.UPDATE_NODE_LABEL,
            "NodeUpdate",
        ),
        (EventResource.CSI_NODE, ActionType.UPDATE_OTHER, "storage.k8s.io/CSINodeUpdate"),
        (EventResource.WILDCARD, ActionType.ALL, "*All"),
    ],
)
def test_events_are_named_as_in_the_metrics_of_kube_scheduler(
    resource: EventResource, action: ActionType, label: str
) -> None:
    assert event_label(ClusterEvent(resource, action)) == label


@pytest.mark.parametrize(
    ("resource", "action", "labels"),
    [
        (
            EventResource.POD,
            ActionType.DELETE | ActionType.UPDATE_POD_SCALE_DOWN,
            ["PodDelete", "PodUpdatePodScaleDown"],
        ),
        (EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE, ["NodeAdd", "NodeUpdate"]),
        (
            EventResource.NAMESPACE,
            ActionType.ADD | ActionType.UPDATE,
            ["NamespaceAdd", "NamespaceUpdate"],
        ),
        ("foos.v1.example.com", ActionType.DELETE, ["foos.v1.example.comDelete"]),
    ],
)
def test_a_registration_names_the_event_of_each_of_its_actions(
    resource: EventResource | str, action: ActionType, labels: list[str]
) -> None:
    assert registration_labels(ClusterEvent(resource, action)) == labels


def test_an_event_can_have_its_own_label() -> None:
    assert event_label(FORCE_ACTIVATE) == "ForceActivate"


def test_only_all_actions_on_all_resources_are_a_wildcard() -> None:
    assert FORCE_ACTIVATE.is_wildcard
    assert not NODE_ADD.is_wildcard
    assert not ClusterEvent(EventResource.WILDCARD, ActionType.ADD).is_wildcard
    assert not UNSCHEDULED_POD_UPDATE.is_wildcard


@pytest.mark.parametrize(
    ("old", "new", "action"),
    [
        (pending("p"), pending("p", labels={"a": "b"}), ActionType.UPDATE_POD_LABEL),
        (pending("p", cpu="2"), pending("p", cpu="1"), ActionType.UPDATE_POD_SCALE_DOWN),
        (pending("p", cpu="2"), pending("p"), ActionType.UPDATE_POD_SCALE_DOWN),
        (pending("p", cpu="1"), pending("p", cpu="2"), ActionType.UPDATE_POD_OTHER),
        (
            pending("p"),
            pending("p", tolerations=[Toleration(key="gpu")]),
            ActionType.UPDATE_POD_TOLERATION,
        ),
        (
            pending("p", gates=["a", "b"]),
            pending("p"),
            ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED,
        ),
        (
            pending("p", gates=["a", "b"]),
            pending("p", gates=["b"]),
            ActionType.UPDATE_POD_OTHER,
        ),
        (pending("p"), pending("p", nominated_node="n"), ActionType.UPDATE_POD_OTHER),
        (pending("p"), pending("p"), ActionType.UPDATE_POD_OTHER),
    ],
)
def test_an_update_of_a_pod_is_named_after_what_changed(
    old: PodInfo, new: PodInfo, action: ActionType
) -> None:
    assert pod_update_events(old, new) == [ClusterEvent(EventResource.UNSCHEDULED_POD, action)]


def test_an_update_of_several_fields_is_one_event_for_each() -> None:
    events = pod_update_events(
        pending("p", gates=["a"], cpu="2"), pending("p", cpu="1", labels={"a": "b"})
    )
    assert [event.action for event in events] == [
        ActionType.UPDATE_POD_LABEL,
        ActionType.UPDATE_POD_SCALE_DOWN,
        ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED,
    ]


def test_an_update_of_an_assigned_pod_is_an_event_about_assigned_pods() -> None:
    events = pod_update_events(pending("p", node="n"), pending("p", node="n", labels={"a": "b"}))
    assert events == [ClusterEvent(EventResource.ASSIGNED_POD, ActionType.UPDATE_POD_LABEL)]
