"""Paths, Accept headers, list options and protobuf bodies."""

import base64
from typing import Any

import pytest

from simcluster.apiserver.errors import ApiError
from simcluster.apiserver.list_options import parse_list_options
from simcluster.apiserver.negotiation import Wanted, negotiate
from simcluster.apiserver.paths import Review, Target, parse_path
from simcluster.kinds.catalog import Catalog
from simcluster.protobuf.decoding import decode_protobuf


@pytest.mark.parametrize(
    ("path", "plural", "namespace", "name", "subresource"),
    [
        ("/api/v1/pods", "pods", None, "", ""),
        ("/api/v1/namespaces/ns/pods", "pods", "ns", "", ""),
        ("/api/v1/namespaces/ns/pods/a/binding", "pods", "ns", "a", "binding"),
        ("/api/v1/namespaces", "namespaces", None, "", ""),
        ("/api/v1/namespaces/ns", "namespaces", None, "ns", ""),
        ("/api/v1/namespaces/ns/finalize", "namespaces", None, "ns", "finalize"),
        ("/api/v1/nodes/n/status", "nodes", None, "n", "status"),
        ("/apis/apps/v1/namespaces/ns/deployments/d/scale", "deployments", "ns", "d", "scale"),
    ],
)
def test_paths_of_resources_are_parsed(
    path: str, plural: str, namespace: str | None, name: str, subresource: str
) -> None:
    target = parse_path(path, Catalog())
    assert isinstance(target, Target)
    assert (target.resource.plural, *target[1:]) == (plural, namespace, name, subresource)


def test_paths_of_reviews_are_parsed() -> None:
    binding = parse_path("/api/v1/namespaces/ns/bindings", Catalog())
    assert binding == Review("", "v1", "bindings", "ns")
    review = parse_path("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", Catalog())
    assert isinstance(review, Review)


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1",
        "/api/v1/nosuches",
        "//api/v1/pods",
        "/api/v1//pods",
        "/api/v2/pods",
        "/api/v1/pods/a",
        "/api/v1/namespaces/ns/nodes",
        "/api/v1/namespaces/ns/pods/a/nosuch",
        "/api/v1/namespaces/ns/pods/a/status/more",
        "/stowage",
    ],
)
def test_other_paths_have_no_target(path: str) -> None:
    assert parse_path(path, Catalog()) is None


@pytest.mark.parametrize(
    ("accept", "wanted"),
    [
        ("", Wanted()),
        ("*/*", Wanted()),
        ("application/json", Wanted()),
        ("application/vnd.kubernetes.protobuf, application/json", Wanted()),
        ("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", Wanted(shape="Table")),
        (
            "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1beta1",
            Wanted(shape="PartialObjectMetadataList", meta_version="v1beta1"),
        ),
        ("application/json;as=Unknown;g=meta.k8s.io;v=v1,application/json", Wanted()),
        ("application/json;as=Table;v=v2;g=meta.k8s.io,application/json", Wanted()),
        ("text/html, application/json;q=0.5, application/yaml", Wanted("application/yaml")),
        ("*/*, application/yaml", Wanted("application/yaml")),
        ("application/json;pretty=1", Wanted(is_pretty=True)),
    ],
)
def test_accept_headers_are_parsed(accept: str, wanted: Wanted) -> None:
    assert negotiate(accept) == wanted


def test_a_client_that_does_not_accept_json_is_refused() -> None:
    with pytest.raises(ApiError) as caught:
        negotiate("application/vnd.kubernetes.protobuf")
    assert caught.value.code == 406


def test_list_options_are_read_and_checked() -> None:
    options = parse_list_options({"watch": "true", "limit": "5", "timeoutSeconds": "7"})
    assert (options.watch, options.limit, options.timeout_s) == (True, 5, 7)
    assert not parse_list_options({"watch": "0"}).watch
    with pytest.raises(ApiError, match='parsing "x": invalid syntax'):
        parse_list_options({"limit": "x"})
    with pytest.raises(ApiError, match='parsing "": invalid syntax'):
        parse_list_options({"limit": ""})
    with pytest.raises(ApiError, match='parsing "9223372036854775808": value out of range'):
        parse_list_options({"timeoutSeconds": "9223372036854775808"})


def _field(number: int, value: bytes | int) -> bytes:
    if isinstance(value, int):
        return bytes([number << 3]) + _varint(value)
    return bytes([number << 3 | 2]) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    value %= 1 << 64
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def _message(kind: str, raw: bytes) -> bytes:
    type_meta = _field(1, b"v1") + _field(2, kind.encode())
    return b"k8s\0" + _field(1, type_meta) + _field(2, raw) + _field(3, b"") + _field(4, b"")


def test_protobuf_bodies_are_decoded() -> None:
    entry = _field(1, b"key") + _field(2, b"value")
    metadata = _field(1, b"a") + _field(2, b"") + _field(8, b"") + _field(11, entry)
    raw = _field(1, metadata) + _field(2, entry) + _field(3, entry) + _field(4, 1)
    encoded = base64.b64encode(b"value").decode()
    assert decode_protobuf(_message("ConfigMap", raw)) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a", "labels": {"key": "value"}},
        "data": {"key": "value"},
        "binaryData": {"key": encoded},
        "immutable": True,
    }


def test_negative_protobuf_numbers_and_int_or_string_fields_are_decoded() -> None:
    priority = decode_protobuf(_message("PriorityClass", _field(2, -5)))
    assert priority["value"] == -5
    share = _field(1, 1) + _field(3, b"50%")
    count = _field(2, 2)
    spec: Any = _field(1, share) + _field(3, count)
    budget = decode_protobuf(_message("PodDisruptionBudget", _field(2, spec)))
    assert budget["spec"] == {"minAvailable": "50%", "maxUnavailable": 2}


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        (b"{}", "does not appear to be a protobuf message"),
        (_message("Node", b""), "kind Node is not understood"),
        (_message("ConfigMap", _field(9, 1)), "field 9 of ConfigMap is not understood"),
        (_message("ConfigMap", b"\x0a\x7f"), "malformed protobuf"),
    ],
)
def test_unknown_protobuf_is_refused(body: bytes, complaint: str) -> None:
    with pytest.raises(ApiError, match=complaint):
        decode_protobuf(body)
