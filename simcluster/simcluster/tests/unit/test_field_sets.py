"""Sets of field paths: from objects, comparison, and the ``fieldsV1`` format."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcluster.patch.apply.field_sets import (
    MissingKeyError,
    all_fields,
    applied_fields,
    compare,
    from_fields_v1,
    path_text,
    to_fields_v1,
)
from simcluster.schema import Struct, struct_of

Json = dict[str, Any]

ELEMENTS = st.sampled_from(["f:a", "f:b", 'k:{"name":"c"}', 'v:"x"'])
PATHS = st.lists(ELEMENTS, min_size=1, max_size=4).map(tuple)


@given(st.sets(PATHS, max_size=12))
def test_a_written_field_set_can_be_read(fields: set[tuple[str, ...]]) -> None:
    assert from_fields_v1(to_fields_v1(fields)) == fields


def pod_type() -> Struct:
    struct = struct_of("Pod")
    assert struct is not None
    return struct


def pod(*containers: Json, **metadata: Any) -> Json:
    return {"metadata": metadata, "spec": {"containers": list(containers)}}


def test_applied_fields_are_leaves_and_items() -> None:
    fields = applied_fields(pod({"name": "c", "args": ["x"]}, labels={"a": "b"}), pod_type())
    assert {path_text(path) for path in fields} == {
        ".metadata.labels.a",
        '.spec.containers[name="c"]',
        '.spec.containers[name="c"].name',
        '.spec.containers[name="c"].args',
    }


def test_created_fields_include_maps_and_lists() -> None:
    fields = all_fields(pod({"name": "c", "ports": [{"containerPort": 1}]}), pod_type())
    assert to_fields_v1(fields)["f:spec"] == {
        "f:containers": {
            'k:{"name":"c"}': {
                ".": {},
                "f:name": {},
                "f:ports": {
                    ".": {},
                    'k:{"containerPort":1,"protocol":"TCP"}': {".": {}, "f:containerPort": {}},
                },
            }
        }
    }


def test_changed_fields_are_those_that_differ() -> None:
    old = pod({"name": "c", "image": "x"}, {"name": "d"}, labels={"a": "b"})
    new = pod({"name": "c", "image": "y"}, labels={"a": "b", "c": "d"})
    changed, removed = compare(old, new, pod_type())
    assert {path_text(path) for path in changed} == {
        ".metadata.labels.c",
        '.spec.containers[name="c"].image',
    }
    assert {path_text(path) for path in removed} == {
        '.spec.containers[name="d"]',
        '.spec.containers[name="d"].name',
    }


def test_a_list_item_without_its_keys_is_refused() -> None:
    with pytest.raises(MissingKeyError, match=r"omits all key fields \[\"name\"\]"):
        applied_fields(pod({"image": "x"}), pod_type())
