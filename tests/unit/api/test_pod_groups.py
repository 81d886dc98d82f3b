"""Pod groups as the API server sends them, of both sources."""

import json
from typing import Any

import pytest

from stowage.api import decode_list, decode_pod
from stowage.api.events import PodGroupGone, PodGroupSeen
from stowage.api.objects.pod_groups import (
    CORE_GROUPS,
    COSCHEDULING_GROUPS,
    CoschedulingPodGroup,
    PodGroup,
    member_of,
)
from stowage.api.reflected_kinds import COSCHEDULING_POD_GROUPS, POD_GROUPS, Identity

GANG: dict[str, Any] = {
    "metadata": {"name": "g", "namespace": "default", "uid": "u", "resourceVersion": "1"},
    "spec": {
        "schedulingPolicy": {"gang": {"minCount": 3}},
        "schedulingConstraints": {"topology": [{"key": "rack"}]},
        "disruptionMode": "PodGroup",
        "priority": 7,
    },
    "status": {"conditions": [{"type": "PodGroupScheduled", "status": "False"}]},
}


def _list(*items: Any) -> bytes:
    page = {"kind": "PodGroupList", "metadata": {"resourceVersion": "1"}, "items": items}
    return json.dumps(page).encode()


def test_a_gang_is_decoded_with_all_that_scheduling_reads() -> None:
    (group,) = decode_list(PodGroup, _list(GANG)).items

    assert (group.key, group.min_count, group.topology_key) == ("default/g", 3, "rack")
    assert (group.priority, group.is_disrupted_as_a_whole) == (7, True)
    assert group.status.conditions[0].type == "PodGroupScheduled"
    assert POD_GROUPS.seen(group) == PodGroupSeen(group)


def test_a_basic_group_has_no_minimum_no_constraint_and_priority_zero() -> None:
    basic = {"metadata": {"name": "b"}, "spec": {"schedulingPolicy": {"basic": {}}}}
    (group,) = decode_list(PodGroup, _list(basic)).items

    assert (group.min_count, group.topology_key, group.priority) == (None, "", 0)
    assert not group.is_disrupted_as_a_whole


@pytest.mark.parametrize(("sent", "timeout_s"), [(None, None), (0, None), (30, 30)])
def test_a_group_of_the_coscheduling_plugin_becomes_a_gang(
    sent: int | None, timeout_s: int | None
) -> None:
    spec = {"minMember": 4, "scheduleTimeoutSeconds": sent, "minResources": {"cpu": "4"}}
    (found,) = decode_list(
        CoschedulingPodGroup, _list({"metadata": {"name": "g", "namespace": "n"}, "spec": spec})
    ).items
    seen = COSCHEDULING_POD_GROUPS.seen(found)

    assert isinstance(seen, PodGroupSeen)
    assert (seen.group.key, seen.group.min_count, seen.permit_timeout_s) == ("n/g", 4, timeout_s)
    gone = COSCHEDULING_POD_GROUPS.gone(Identity("n", "g", "u"))
    assert gone == PodGroupGone("n", "g", seen.source)
    assert seen.source != PodGroupSeen(PodGroup()).source


@pytest.mark.parametrize(
    ("field", "label", "member", "source"),
    [
        (None, None, "", COSCHEDULING_GROUPS),
        ("f", None, "f", CORE_GROUPS),
        (None, "l", "l", COSCHEDULING_GROUPS),
        ("f", "l", "f", CORE_GROUPS),
        ("", "l", "l", COSCHEDULING_GROUPS),
    ],
)
def test_the_field_comes_before_the_label(
    field: str | None, label: str | None, member: str, source: str
) -> None:
    spec = {} if field is None else {"schedulingGroup": {"podGroupName": field}}
    labels = {} if label is None else {"scheduling.x-k8s.io/pod-group": label}
    pod = {"metadata": {"name": "p", "labels": labels}, "spec": spec}

    assert member_of(decode_pod(json.dumps(pod).encode())) == (member, source)
