"""Tables: the cells that kubectl prints."""

from typing import Any

import msgspec
import pytest

from simcluster.clock import parse_timestamp
from simcluster.kinds.resources import (
    DEPLOYMENTS,
    EVENTS,
    JOBS,
    NODES,
    PODS,
    ROLES,
    Resource,
)
from simcluster.printing.cells import human_duration, selector
from simcluster.printing.table import TableFormat
from simcluster.store.store import Stored

Json = dict[str, Any]

CREATED = "2026-01-01T00:00:00Z"
NOW = parse_timestamp(CREATED) + 90


def row(resource: Resource, obj: Json) -> dict[str, Any]:
    """The cells of one object by column name."""
    full = {
        **obj,
        "metadata": {"name": "x", "creationTimestamp": CREATED, **obj.get("metadata", {})},
    }
    table = TableFormat(resource, time_s=lambda: NOW)
    decoded = msgspec.json.decode(table.many([Stored(full, 1)], {}))
    columns = [column["name"] for column in decoded["columnDefinitions"]]
    return dict(zip(columns, decoded["rows"][0]["cells"], strict=True))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.4, "0s"),
        (119, "119s"),
        (120, "2m"),
        (192, "3m12s"),
        (3600, "60m"),
        (10800, "3h"),
        (11100, "3h5m"),
        (30 * 3600, "30h"),
        (51 * 3600, "2d3h"),
        (400 * 86400, "400d"),
        (800 * 86400, "2y70d"),
        (3000 * 86400, "8y"),
        (-5, "<invalid>"),
    ],
)
def test_durations_are_shortened_as_kubectl_does(seconds: float, text: str) -> None:
    assert human_duration(seconds) == text


@pytest.mark.parametrize(
    ("pod", "status"),
    [
        ({"status": {"phase": "Pending"}}, "Pending"),
        ({"status": {"phase": "Failed", "reason": "OutOfcpu"}}, "OutOfcpu"),
        (
            {
                "status": {
                    "phase": "Pending",
                    "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}],
                }
            },
            "SchedulingGated",
        ),
        (
            {
                "status": {
                    "phase": "Succeeded",
                    "containerStatuses": [{"state": {"terminated": {"reason": "Completed"}}}],
                }
            },
            "Completed",
        ),
        (
            {"metadata": {"deletionTimestamp": CREATED}, "status": {"phase": "Running"}},
            "Terminating",
        ),
    ],
)
def test_the_status_of_a_pod_is_shown_as_one_word(pod: Json, status: str) -> None:
    cells = row(PODS, {"spec": {"containers": [{}]}, **pod})
    assert cells["Status"] == status
    assert cells["Age"] == "90s"
    assert cells["Node"] == "<none>"


def test_nodes_show_readiness_and_cordons() -> None:
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    assert row(NODES, {"spec": {}, "status": ready})["Status"] == "Ready"
    closed = row(NODES, {"spec": {"unschedulable": True}, "status": ready})
    assert closed["Status"] == "Ready,SchedulingDisabled"
    assert row(NODES, {"spec": {}, "status": {}})["Status"] == "Unknown"
    labels = {"node-role.kubernetes.io/control-plane": ""}
    assert row(NODES, {"metadata": {"labels": labels}, "spec": {}})["Roles"] == "control-plane"


def test_deployments_and_jobs_show_their_counts() -> None:
    template = {"spec": {"containers": [{"name": "c", "image": "x:1"}]}}
    deployment = row(
        DEPLOYMENTS,
        {"spec": {"replicas": 3, "template": template}, "status": {"readyReplicas": 2}},
    )
    assert (deployment["Ready"], deployment["Images"]) == ("2/3", "x:1")
    finished = {
        "succeeded": 4,
        "startTime": CREATED,
        "completionTime": "2026-01-01T00:00:30Z",
        "conditions": [{"type": "Complete", "status": "True"}],
    }
    job = row(JOBS, {"spec": {"completions": 4, "template": template}, "status": finished})
    assert (job["Status"], job["Completions"], job["Duration"]) == ("Complete", "4/4", "30s")


def test_events_show_their_age_count_and_object() -> None:
    event = {
        "involvedObject": {"kind": "Pod", "name": "a"},
        "eventTime": "2026-01-01T00:01:00.000000Z",
        "series": {"count": 3, "lastObservedTime": "2026-01-01T00:01:20.000000Z"},
        "message": "no room\n",
    }
    cells = row(EVENTS, event)
    assert cells["Last Seen"] == "10s (x3 over 30s)"
    assert (cells["Object"], cells["Message"], cells["Count"]) == ("pod/a", "no room", 3)


def test_a_kind_without_columns_shows_name_and_creation() -> None:
    assert row(ROLES, {}) == {"Name": "x", "Created At": CREATED}


def test_an_object_without_required_fields_has_a_row_too() -> None:
    assert row(JOBS, {})["Completions"] == "<unknown>"


def test_rows_include_the_part_of_the_object_in_include_object() -> None:
    stored = Stored({"metadata": {"name": "x"}, "spec": {"containers": []}}, 1)
    carried = {}
    for include in ("None", "Metadata", "Object"):
        decoded = msgspec.json.decode(TableFormat(PODS, include).one(stored))
        carried[include] = (decoded["rows"][0]["object"] or {}).get("kind")
    assert carried == {"None": None, "Metadata": "PartialObjectMetadata", "Object": "Pod"}


def test_only_the_first_table_of_a_watch_defines_columns() -> None:
    table = TableFormat(PODS)
    stored = Stored({"metadata": {"name": "x"}, "spec": {}}, 1)
    first, second = [msgspec.json.decode(table.one(stored)) for _ in range(2)]
    assert first["columnDefinitions"]
    assert not second["columnDefinitions"]


def test_selectors_are_shown_in_their_short_form() -> None:
    label_selector = {
        "matchLabels": {"app": "web"},
        "matchExpressions": [
            {"key": "tier", "operator": "In", "values": ["b", "a"]},
            {"key": "canary", "operator": "DoesNotExist"},
        ],
    }
    assert selector(label_selector) == "app=web,!canary,tier in (a,b)"
    assert selector(None) == "<none>"
    assert selector({}) == "<none>"
