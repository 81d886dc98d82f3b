"""Objects are decoded from JSON of the API server, and errors name what is wrong."""

import json
from typing import Any

import pytest

from stowage.api.decoding.decode import (
    KINDS,
    WatchError,
    WatchEvent,
    convert_object,
    decode_list,
    decode_object,
    decode_pod,
    decode_watch_event,
)
from stowage.api.decoding.errors import InvalidObject
from stowage.api.objects.meta import ApiStruct, controller_of
from stowage.api.objects.namespace import Namespace
from stowage.api.objects.node import Node
from stowage.api.objects.pod import Pod


def as_json(**body: Any) -> bytes:
    return json.dumps(body).encode()


def test_field_names_with_initials_are_those_of_kubernetes() -> None:
    ports = [{"hostPort": 80, "containerPort": 80, "hostIP": "10.0.0.1", "protocol": "TCP"}]
    volumes = [{"name": "v", "awsElasticBlockStore": {"volumeID": "vol-1"}}]
    spec = {"containers": [{"name": "c", "ports": ports}], "volumes": volumes}
    pod = decode_pod(as_json(metadata={"name": "p", "resourceVersion": "7"}, spec=spec))
    assert pod.metadata.resource_version == "7"
    assert pod.spec.containers[0].ports[0].host_ip == "10.0.0.1"
    ebs = pod.spec.volumes[0].aws_elastic_block_store
    assert ebs is not None
    assert ebs.volume_id == "vol-1"


def test_absent_fields_have_defaults_and_unknown_fields_are_skipped() -> None:
    pod = decode_pod(as_json(metadata={"name": "p"}, somethingNew={"a": [1]}))
    assert pod.spec.scheduler_name == "default-scheduler"
    assert pod.spec.priority is None
    assert pod.metadata.labels == {}


def test_a_null_field_counts_as_absent() -> None:
    metadata = {"name": "p", "labels": None, "creationTimestamp": None, "ownerReferences": None}
    pod = decode_pod(as_json(metadata=metadata, spec={"containers": None, "nodeName": None}))
    assert (pod.metadata.labels, pod.spec.containers, pod.spec.node_name) == ({}, (), "")
    assert convert_object(Pod, {"metadata": metadata}) == Pod(pod.metadata)


@pytest.mark.parametrize(
    ("body", "field", "value", "expectation"),
    [
        ({"spec": {"priority": "high"}}, "spec.priority", "high", "int"),
        ({"spec": {"nodeSelector": {"a": "b", "c": 1}}}, "spec.nodeSelector[c]", "1", "str"),
        (
            {"spec": {"containers": [{"name": "a"}, {"name": 5}]}},
            "spec.containers[1].name",
            "5",
            "str",
        ),
    ],
)
def test_a_field_of_the_wrong_type_is_named(
    body: dict[str, Any], field: str, value: str, expectation: str
) -> None:
    with pytest.raises(InvalidObject) as refusal:
        decode_pod(as_json(metadata={"name": "p", "namespace": "ns", "uid": "u"}, **body))
    found = refusal.value
    assert (found.kind, found.name, found.uid) == ("Pod", "ns/p", "u")
    assert (found.field, found.value) == (field, value)
    assert expectation in found.expectation


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"metadata": []}'])
def test_json_that_is_no_object_is_invalid(data: bytes) -> None:
    with pytest.raises(InvalidObject, match="Pod <unknown>"):
        decode_pod(data)


def test_the_error_message_is_a_sentence() -> None:
    with pytest.raises(InvalidObject) as refusal:
        decode_object(Node, as_json(metadata={"name": "n"}, spec={"unschedulable": "yes"}))
    want = 'Node n: spec.unschedulable: "yes" is not valid (expected `bool`)'
    assert str(refusal.value) == want


def test_a_list_separates_valid_and_invalid_objects() -> None:
    items = [
        {"metadata": {"name": "good"}},
        {"metadata": {"name": "bad", "labels": 3}},
        {"metadata": {"name": "nulls", "labels": None}},
    ]
    page = decode_list(
        Pod, as_json(metadata={"resourceVersion": "5", "continue": "c"}, items=items)
    )
    assert (page.metadata.resource_version, page.metadata.continue_) == ("5", "c")
    assert [pod.metadata.name for pod in page.items] == ["good", "nulls"]
    assert [invalid.name for invalid in page.invalid] == ["bad"]


@pytest.mark.parametrize("items", [[], None])
def test_a_list_may_be_empty(items: list[Any] | None) -> None:
    assert decode_list(Pod, as_json(metadata={"resourceVersion": "5"}, items=items)).items == []


@pytest.mark.parametrize("data", [b"", b'{"items": 3}'])
def test_a_page_that_is_no_list_is_an_error(data: bytes) -> None:
    with pytest.raises(InvalidObject, match="PodList"):
        decode_list(Pod, data)


@pytest.mark.parametrize("labels", [{"a": "b"}, None])
def test_a_watch_line_holds_an_event(labels: dict[str, str] | None) -> None:
    line = as_json(type="ADDED", object={"metadata": {"name": "n", "labels": labels}})
    event = decode_watch_event(Namespace, line)
    assert isinstance(event, WatchEvent)
    assert (event.type, event.object.metadata.labels) == ("ADDED", labels or {})


@pytest.mark.parametrize("kind", [Pod, Namespace])
def test_an_error_event_of_a_watch_has_its_reason(kind: type[ApiStruct]) -> None:
    status = {"kind": "Status", "status": "Failure", "reason": "Expired", "code": 410}
    event = decode_watch_event(kind, as_json(type="ERROR", object={**status, "message": "old"}))
    assert event == WatchError(410, "Expired", "old")


@pytest.mark.parametrize(
    "line", [b"x", b'{"type": 5}', as_json(type="ADDED", object={"metadata": {"labels": 3}})]
)
def test_an_invalid_watch_line_is_an_error(line: bytes) -> None:
    with pytest.raises(InvalidObject):
        decode_watch_event(Pod, line)


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_can_be_decoded_from_metadata_alone(name: str) -> None:
    decoded = decode_object(KINDS[name], as_json(kind=name, metadata={"name": "x"}))
    assert type(decoded).__name__ == name


def test_the_controller_is_the_owner_with_the_controller_field() -> None:
    owners = [{"name": "a", "uid": "1"}, {"name": "b", "uid": "2", "controller": True}]
    pod = convert_object(Pod, {"metadata": {"name": "p", "ownerReferences": owners}})
    controller = controller_of(pod.metadata)
    assert controller is not None
    assert controller.name == "b"
    assert controller_of(Pod().metadata) is None
