"""The estimated length of objects in protobuf."""

from typing import Any

import pytest

from simcluster.schema.protobuf_size import protobuf_size
from simcluster.schema.types import struct_of

Json = dict[str, Any]

# Lengths of messages as protoc encodes them, added up by hand: tag, length, value.
SIZES: list[tuple[str, Json, int]] = [
    ("ConfigMap", {}, 0),
    ("ConfigMap", {"metadata": {"name": "abc"}}, 2 + (2 + 3)),
    ("ConfigMap", {"data": {"k": "v" * 200}}, 3 + (2 + 1) + (3 + 200)),
    ("ConfigMap", {"binaryData": {"k": "QUJD"}}, 2 + (2 + 1) + (2 + 3)),
    ("ConfigMap", {"immutable": True}, 2),
    ("ObjectMeta", {"generation": 300}, 1 + 2),
    ("ObjectMeta", {"creationTimestamp": "2026-11-23T20:16:26Z"}, 2 + 8),
    ("ObjectMeta", {"finalizers": ["ab", "c"]}, (2 + 2) + (2 + 1)),
    ("ObjectMeta", {"name": "é"}, 2 + 2),
    ("ResourceRequirements", {"requests": {"cpu": "1"}}, 2 + (2 + 3) + 2 + (2 + 1)),
    ("Toleration", {"key": "a", "tolerationSeconds": -1}, (2 + 1) + 11),
    ("HTTPGetAction", {"port": "http"}, 2 + (2 + 4)),
    ("Pod", {"unknown": {"a": [1]}}, 2 + len('{"a":[1]}')),
]


@pytest.mark.parametrize(("kind", "obj", "size"), SIZES)
def test_the_length_is_that_of_the_message(kind: str, obj: Json, size: int) -> None:
    struct = struct_of(kind)
    assert struct is not None
    assert protobuf_size(obj, struct) == size
