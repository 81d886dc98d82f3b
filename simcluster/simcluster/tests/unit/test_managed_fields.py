"""managedFields are stored separately from objects and included in answers."""

from typing import Any

import msgspec

from simcluster.patch.apply import Writer, record_create, record_update
from simcluster.schema import struct_of
from simcluster.store.managed_fields import ManagedFields, managed_fields_of_entries
from simcluster.store.store import Store

Json = dict[str, Any]

POD = struct_of("Pod")
KUBELET = Writer("kubelet", "v1", "status", "2026-01-02T03:04:05Z")


def pod(**status: Any) -> Json:
    return {"metadata": {"name": "p", "namespace": "ns", "labels": {"a": "b"}}, "status": status}


def entries(managed_fields: ManagedFields | None) -> list[Json]:
    return [] if managed_fields is None else managed_fields.entries()


def updated(before: Json, after: Json, managed_fields: ManagedFields, now: str) -> ManagedFields:
    assert POD is not None
    found = record_update(after, before, POD, KUBELET._replace(now=now), managed_fields)
    assert found is not None
    return found


def created() -> ManagedFields:
    assert POD is not None
    writer = KUBELET._replace(manager="kubectl", subresource="", now="2026-01-01T00:00:00Z")
    found = record_create(pod(), POD, writer)
    assert found is not None
    return found


def test_managed_fields_are_in_the_encoded_metadata_but_not_in_the_object_tree() -> None:
    store, managed_fields = Store(), created()
    for obj in (pod(phase="Pending"), {"kind": "x", **pod()}):
        stored = store.put("pods", obj, managed_fields)
        whole = msgspec.json.decode(stored.body)
        assert whole == stored.whole
        assert whole["metadata"].pop("managedFields") == managed_fields.entries()
        assert whole == stored.obj == stored.copy_of_obj()


def test_an_object_keeps_its_managed_fields_unless_a_write_replaces_them() -> None:
    store, managed_fields = Store(), created()
    store.put("pods", pod(), managed_fields)
    assert store.put("pods", pod(phase="Running")).managed_fields is managed_fields
    removed = store.put("pods", pod(phase="Running"), None)
    assert removed.managed_fields is None
    assert b"managedFields" not in removed.body
    again = store.put("pods", pod(phase="Running"), managed_fields)
    assert again.revision == removed.revision + 1
    assert store.put("pods", pod(phase="Running"), managed_fields._replace()) is again
    assert store.remove("pods", again).managed_fields is managed_fields


def test_similar_objects_share_their_managed_fields() -> None:
    assert created() is created()


def test_an_update_changes_the_time_when_it_sets_a_field_but_not_when_it_removes_one() -> None:
    first = updated(pod(), pod(phase="Pending", message="m"), created(), "2026-01-01T00:00:01Z")
    assert [each["time"] for each in entries(first)] == [
        "2026-01-01T00:00:00Z",
        "2026-01-01T00:00:01Z",
    ]
    before = pod(phase="Pending", message="m")
    second = updated(before, pod(phase="Running", message="m"), first, "2026-01-01T00:00:02Z")
    assert entries(second)[1] == {**entries(first)[1], "time": "2026-01-01T00:00:02Z"}
    before = pod(phase="Running", message="m")
    third = updated(before, pod(phase="Running"), second, "2026-01-01T00:00:03Z")
    assert entries(third)[1]["time"] == "2026-01-01T00:00:02Z"
    assert entries(third)[1]["fieldsV1"] == {"f:status": {"f:phase": {}}}


def test_managed_fields_of_a_client_are_kept_until_something_changes() -> None:
    sent = {"fieldsType": "FieldsV1", "manager": "m", "operation": "Apply", "fieldsV1": {}}
    managed_fields = managed_fields_of_entries([sent])
    assert managed_fields is not None
    assert managed_fields.entries() == [sent]
    assert updated(pod(), pod(), managed_fields, "2026-01-01T00:00:01Z") is managed_fields
    assert Store().put("pods", pod(), managed_fields).body.count(managed_fields.text) == 1
