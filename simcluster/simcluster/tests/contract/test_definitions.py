"""Validation of CustomResourceDefinitions, with the texts of the API server."""

import copy
from typing import Any

import pytest

from simcluster.tests.contract.requests import causes
from simcluster.tests.contract.test_custom_resources import DEFINITIONS, definition, version
from simcluster.tests.support.api_client import ApiClient

Json = dict[str, Any]

PATH = f"{DEFINITIONS}?dryRun=All"
ROOT = "spec.validation.openAPIV3Schema.properties[spec]"
LABEL = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', "
    "regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
)


def tools(schema: Json | None = None) -> Json:
    """A definition whose objects have a spec of this schema."""
    shape = {"type": "object", "properties": {"spec": schema or {"type": "object"}}}
    stored = version("v1", storage=True, schema={"openAPIV3Schema": shape})
    return copy.deepcopy(definition("Tool", "tests.example.com", stored))


def change(body: Json, path: str, value: Any) -> Json:
    """Set the value at a path of a definition's spec."""
    *parents, last = path.split(".")
    holder: Any = body["spec"]
    for key in parents:
        holder = holder[int(key)] if key.isdigit() else holder[key]
    holder[last] = value
    return body


@pytest.mark.parametrize(
    ("path", "value", "field", "message"),
    [
        ("names.singular", "Bad_One", "spec.names.singular", f'Invalid value: "Bad_One": {LABEL}'),
        (
            "names.listKind",
            "bad_list",
            "spec.names.listKind",
            'Invalid value: "bad_list": may have mixed case, but should otherwise match: ' + LABEL,
        ),
        (
            "names.listKind",
            "Tool",
            "spec.names.listKind",
            'Invalid value: "Tool": kind and listKind may not be the same',
        ),
        ("names.shortNames", ["T_"], "spec.names.shortNames[0]", f'Invalid value: "T_": {LABEL}'),
        ("names.categories", ["T_"], "spec.names.categories[0]", f'Invalid value: "T_": {LABEL}'),
        (
            "conversion",
            {"strategy": "Bogus"},
            "spec.conversion.strategy",
            'Unsupported value: "Bogus": supported values: "None", "Webhook"',
        ),
        (
            "preserveUnknownFields",
            True,
            "spec.preserveUnknownFields",
            (
                "Invalid value: true: cannot set to true, set "
                "x-kubernetes-preserve-unknown-fields to "
                "true in spec.versions[*].schema instead"
            ),
        ),
        (
            "versions.0.deprecationWarning",
            "old",
            "spec.versions[0].deprecationWarning",
            'Invalid value: "old": can only be set for deprecated versions',
        ),
        (
            "versions.0.additionalPrinterColumns",
            [{"name": "a", "type": "text", "jsonPath": ".a"}],
            "spec.additionalPrinterColumns[0].type",
            'Invalid value: "text": must be one of boolean,date,integer,number,string',
        ),
        (
            "versions.0.subresources",
            {"scale": {"specReplicasPath": ".x", "statusReplicasPath": ".status.n"}},
            "spec.subresources.scale.specReplicasPath",
            'Invalid value: ".x": should be a json path under .spec',
        ),
    ],
)
async def test_a_malformed_part_of_a_definition_is_refused(
    http: ApiClient, path: str, value: Any, field: str, message: str
) -> None:
    reply = await http.post(PATH, change(tools(), path, value))
    assert [found[1:] for found in causes(reply)] == [(field, message)]


async def test_a_definition_needs_a_stored_version(http: ApiClient) -> None:
    reply = await http.post(PATH, change(tools(), "versions", []))
    assert [found[1:] for found in causes(reply)] == [
        (
            "spec.versions",
            "Invalid value: []: must have exactly one version marked as storage version",
        ),
        ("status.storedVersions", "Invalid value: null: must have at least one stored version"),
    ]


KEYED: Json = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "items": {"type": "object", "properties": {"a": {"type": "string"}}},
}


@pytest.mark.parametrize(
    ("schema", "field", "message"),
    [
        (
            {"type": "text"},
            "type",
            (
                'Unsupported value: "text": supported values: "array", "boolean", "integer", '
                '"number", '
                '"object", "string"'
            ),
        ),
        (
            {"type": "object", "properties": {"a": {"type": "string"}}}
            | {"additionalProperties": {"type": "string"}},
            "additionalProperties",
            "Forbidden: additionalProperties and properties are mutual exclusive",
        ),
        (
            {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
            "uniqueItems",
            (
                "Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes "
                "quadratic"
            ),
        ),
        (
            KEYED,
            "x-kubernetes-list-map-keys",
            "Required value: must not be empty if x-kubernetes-list-type is map",
        ),
        (
            {**KEYED, "x-kubernetes-list-map-keys": ["b"]},
            "x-kubernetes-list-map-keys",
            'Invalid value: ["b"]: entries must all be names of item properties',
        ),
        (
            {**KEYED, "x-kubernetes-list-map-keys": ["a"]},
            "items.properties[a].default",
            (
                "Required value: this property is in x-kubernetes-list-map-keys, so it must have a "
                "default or be a required property"
            ),
        ),
        (
            {"type": "string", "x-kubernetes-list-type": "set"},
            "type",
            'Invalid value: "string": must be array if x-kubernetes-list-type is specified',
        ),
        (
            {"type": "object", "x-kubernetes-map-type": "loose"},
            "x-kubernetes-map-type",
            'Unsupported value: "loose": supported values: "atomic", "granular"',
        ),
        (
            {"type": "integer", "default": 5, "maximum": 3},
            "default",
            "Invalid value: 5:  in body should be less than or equal to 3",
        ),
        (
            {"type": "object", "required": ["a"], "default": {}},
            "default.a",
            "Required value",
        ),
    ],
)
async def test_a_schema_that_is_not_structural_is_refused(
    http: ApiClient, schema: Json, field: str, message: str
) -> None:
    reply = await http.post(PATH, tools(schema))
    assert [found[1:] for found in causes(reply)] == [(f"{ROOT}.{field}", message)]
