"""Structural schemas: pruning, defaults, and the message of each rule."""

import copy
from typing import Any

import pytest

from simcluster.crds.definitions import (
    set_definition_defaults,
    validate_definition,
    validate_definition_update,
)
from simcluster.crds.schema import check, fill_defaults, prune, unknown_fields

Json = dict[str, Any]


def errors(value: Any, schema: Json) -> list[str]:
    """Errors of one field."""
    found = check({"f": value}, {"type": "object", "properties": {"f": schema}})
    return [f"{error.field}: {error.message}" for error in found]


@pytest.mark.parametrize(
    ("value", "schema", "expected"),
    [
        (1, {"type": "string"}, 'Invalid value: "integer": f in body must be of type string'),
        (True, {"type": "integer"}, 'Invalid value: "boolean": f in body must be of type integer'),
        (None, {"type": "string"}, 'Invalid value: "null": f in body must be of type string'),
        (
            1.5,
            {"x-kubernetes-int-or-string": True},
            'Invalid value: "number": f in body must be of type integer,string',
        ),
    ],
)
def test_a_wrong_type_is_refused_with_both_types(value: Any, schema: Json, expected: str) -> None:
    (found,) = errors(value, schema)
    actual = found.split('"')[1]
    assert found == f'f: {expected}: "{actual}"'


@pytest.mark.parametrize(
    ("value", "schema", "expected"),
    [
        (
            0,
            {"type": "integer", "minimum": 0, "exclusiveMinimum": True},
            "Invalid value: 0: f in body should be greater than 0",
        ),
        (
            5,
            {"type": "number", "maximum": 5, "exclusiveMaximum": True},
            "Invalid value: 5: f in body should be less than 5",
        ),
        (
            5,
            {"type": "integer", "multipleOf": 2},
            "Invalid value: 5: f in body should be a multiple of 2",
        ),
        (
            "a",
            {"type": "string", "minLength": 2},
            'Invalid value: "a": f in body should be at least 2 chars long',
        ),
        ("abc", {"type": "string", "maxLength": 2}, "Too long: may not be more than 2 bytes"),
        (
            [1, 2],
            {"type": "array", "items": {"type": "integer"}, "maxItems": 1},
            "Too many: 2: must have at most 1 items",
        ),
        (
            [],
            {"type": "array", "items": {"type": "integer"}, "minItems": 1},
            "Invalid value: 0: f in body should have at least 1 items",
        ),
        (
            "soon",
            {"type": "string", "format": "date-time"},
            'Invalid value: "soon": f in body must be of type date-time: "soon"',
        ),
    ],
)
def test_each_violated_rule_has_its_message(value: Any, schema: Json, expected: str) -> None:
    assert errors(value, schema) == [f"f: {expected}"]


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        (3.0, {"type": "integer"}),
        (3, {"type": "number"}),
        (None, {"type": "string", "nullable": True}),
        ("50%", {"x-kubernetes-int-or-string": True}),
        (5, {"type": "integer", "enum": [5, 6]}),
        ({"any": 1}, {"type": "object", "x-kubernetes-preserve-unknown-fields": True}),
        ("2026-01-02T03:04:05Z", {"type": "string", "format": "date-time"}),
    ],
)
def test_valid_objects_pass(value: Any, schema: Json) -> None:
    assert errors(value, schema) == []


def test_duplicates_in_sets_and_maps_are_refused() -> None:
    items: Json = {"type": "object", "properties": {"k": {"type": "string"}}}
    keyed = {"type": "array", "items": items, "x-kubernetes-list-type": "map"}
    keyed["x-kubernetes-list-map-keys"] = ["k"]
    assert errors([{"k": "a"}, {"k": "a"}], keyed) == ['f[1]: Duplicate value: {"k":"a"}']
    words = {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}
    assert errors(["a", "b", "a"], words) == ['f[2]: Duplicate value: "a"']


def test_all_of_any_of_one_of_and_not_are_checked() -> None:
    either: Json = {"oneOf": [{"required": ["a"]}, {"required": ["b"]}], "type": "object"}
    assert errors({"a": 1}, either) == []
    assert "Found none valid" in errors({}, either)[0]
    assert "Found 2 valid alternatives" in errors({"a": 1, "b": 1}, either)[0]
    any_of: Json = {"anyOf": [{"minimum": 5}, {"maximum": 1}], "type": "integer"}
    assert "(anyOf)" in errors(3, any_of)[0]
    assert "(not)" in errors(3, {"type": "integer", "not": {"minimum": 2}})[0]


SCHEMA: Json = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "default": {},
            "properties": {
                "a": {"type": "integer", "default": 1},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "map": {
                    "type": "object",
                    "additionalProperties": {
                        "type": "object",
                        "properties": {"x": {"type": "integer", "default": 2}},
                    },
                },
                "pod": {"type": "object", "x-kubernetes-embedded-resource": True},
            },
        }
    },
}


def test_unknown_fields_are_dropped_unless_preserved() -> None:
    obj: Json = {
        "metadata": {"name": "x"},
        "other": 1,
        "spec": {
            "b": 1,
            "free": {"c": {"d": 1}},
            "map": {"k": {"y": 1}},
            "pod": {"kind": "Pod", "spec": {}},
        },
    }
    assert unknown_fields(obj, SCHEMA) == ["other", "spec.b", "spec.map.k.y", "spec.pod.spec"]
    prune(obj, SCHEMA)
    assert obj == {
        "metadata": {"name": "x"},
        "spec": {"free": {"c": {"d": 1}}, "map": {"k": {}}, "pod": {"kind": "Pod"}},
    }


def test_defaults_are_filled_at_every_depth_and_never_shared() -> None:
    first: Json = {}
    second: Json = {"spec": {"map": {"k": {}}}}
    fill_defaults(first, SCHEMA)
    fill_defaults(second, SCHEMA)
    assert first == {"spec": {"a": 1}}
    assert second == {"spec": {"a": 1, "map": {"k": {"x": 2}}}}
    assert SCHEMA["properties"]["spec"]["default"] == {}


def test_metadata_is_kept_whatever_the_schema_says_of_it() -> None:
    # As controller-gen writes it.
    schema = {"type": "object", "properties": {"metadata": {"type": "object"}}}
    obj = {"metadata": {"name": "a", "labels": {"b": "c"}}, "kind": "K"}
    assert unknown_fields(obj, schema) == []
    prune(obj, schema)
    assert obj["metadata"] == {"name": "a", "labels": {"b": "c"}}


def test_a_costly_rule_stays_in_a_definition_whose_schema_does_not_change() -> None:
    item = {
        "type": "string",
        "maxLength": 50,
        "x-kubernetes-validations": [{"rule": "self.contains('abcdefghijkl')"}],
    }
    spec = {"type": "array", "items": item}
    schema = {"type": "object", "properties": {"spec": spec}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    definition: Json = {
        "metadata": {"name": "gauges.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Cluster",
            "names": {"plural": "gauges", "kind": "Gauge"},
            "versions": [version],
        },
    }
    set_definition_defaults(definition)
    [error] = validate_definition(definition)
    assert "estimated rule cost exceeds budget by factor of 4.3x" in error.message
    assert validate_definition_update(copy.deepcopy(definition), definition) == []
    changed = copy.deepcopy(definition)
    changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] = "new"
    assert len(validate_definition_update(changed, definition)) == 1
