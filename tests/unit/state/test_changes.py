"""Updates of objects are classified as actions of cluster events."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from stowage.api.cluster_events import ActionType
from stowage.api.objects.meta import Condition
from stowage.api.objects.node import Taint
from stowage.api.objects.pod import (
    ContainerExtendedResourceRequest,
    PodExtendedResourceClaimStatus,
    PodResourceClaimStatus,
    PodStatus,
    Toleration,
)
from stowage.state import PodClasses, make_pod_info
from stowage.state.changes import is_older, node_update_actions, pod_update_actions
from tests.support.builders import make_node, make_pod

NONE = ActionType(0)


@pytest.mark.parametrize(
    ("before", "after", "want"),
    [
        ({}, {}, NONE),
        ({}, {"cpu": "8"}, ActionType.UPDATE_NODE_ALLOCATABLE),
        ({}, {"labels": {"a": "b"}}, ActionType.UPDATE_NODE_LABEL),
        ({}, {"taints": [Taint("a", "", "NoSchedule")]}, ActionType.UPDATE_NODE_TAINT),
        ({"unschedulable": True}, {}, ActionType.UPDATE_NODE_TAINT),
        ({}, {"unschedulable": True}, NONE),
        (
            {"conditions": (Condition("Ready", "False"),)},
            {"conditions": (Condition("Ready", "True"),)},
            ActionType.UPDATE_NODE_CONDITION,
        ),
        (
            {"conditions": (Condition("Ready", "True", message="1"),)},
            {"conditions": (Condition("Ready", "True", message="2"),)},
            NONE,
        ),
        ({}, {"declared_features": ["F"]}, ActionType.UPDATE_NODE_DECLARED_FEATURE),
        (
            {},
            {"cpu": "8", "labels": {"a": "b"}},
            ActionType.UPDATE_NODE_ALLOCATABLE | ActionType.UPDATE_NODE_LABEL,
        ),
    ],
)
def test_the_actions_of_a_node_update_are_those_of_its_changed_fields(
    before: dict[str, Any], after: dict[str, Any], want: ActionType
) -> None:
    assert node_update_actions(make_node("n", **before), make_node("n", **after)) == want


@pytest.mark.parametrize(
    ("before", "after", "want"),
    [
        ({}, {}, ActionType.UPDATE_POD_OTHER),
        ({}, {"labels": {"a": "b"}}, ActionType.UPDATE_POD_LABEL),
        ({"cpu": "2"}, {"cpu": "1"}, ActionType.UPDATE_POD_SCALE_DOWN),
        ({"cpu": "2", "memory": "1Gi"}, {"cpu": "3"}, ActionType.UPDATE_POD_SCALE_DOWN),
        ({"requests": {"example.com/gpu": "1"}}, {}, ActionType.UPDATE_POD_SCALE_DOWN),
        ({"cpu": "1"}, {"cpu": "2"}, ActionType.UPDATE_POD_OTHER),
        ({}, {"tolerations": [Toleration("a")]}, ActionType.UPDATE_POD_TOLERATION),
        ({"gates": ["g"]}, {}, ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED),
        ({"gates": ["g", "h"]}, {"gates": ["h"]}, ActionType.UPDATE_POD_OTHER),
    ],
)
def test_the_actions_of_a_pod_update_are_those_of_its_changed_fields(
    before: dict[str, Any], after: dict[str, Any], want: ActionType
) -> None:
    classes = PodClasses()
    old, new = (make_pod_info(make_pod("p", **each), classes) for each in (before, after))
    assert pod_update_actions(old, new) == want


def _extended(claim: str, container: str = "c") -> PodStatus:
    request = ContainerExtendedResourceRequest(container, "example.com/gpu", "request-0")
    claim_status = PodExtendedResourceClaimStatus((request,), claim)
    return PodStatus(extended_resource_claim_status=claim_status)


@pytest.mark.parametrize(
    ("before", "after", "want"),
    [
        (
            PodStatus(),
            PodStatus(resource_claim_statuses=(PodResourceClaimStatus("a", "p-a"),)),
            ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM,
        ),
        (PodStatus(), _extended("p-x"), ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM),
        (_extended("p-x"), _extended("p-y"), ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM),
        (_extended("p-x"), _extended("p-x", "d"), ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM),
        (_extended("p-x"), _extended("p-x"), ActionType.UPDATE_POD_OTHER),
    ],
    ids=[
        "made from a template",
        "made for extended resources",
        "another for extended resources",
        "for another container",
        "the same",
    ],
)
def test_claims_in_the_status_of_a_pod_are_an_update_of_their_own(
    before: PodStatus, after: PodStatus, want: ActionType
) -> None:
    classes, pod = PodClasses(), make_pod("p")
    old, new = (make_pod_info(replace(pod, status=each), classes) for each in (before, after))
    assert pod_update_actions(old, new) == want


@pytest.mark.parametrize(
    ("version", "known", "want"),
    [("9", "10", True), ("10", "9", False), ("9", "9", False), ("", "9", False), ("x", "9", False)],
)
def test_resource_versions_are_compared_as_numbers(version: str, known: str, want: bool) -> None:
    assert is_older(version, known) is want
