"""Validation of CustomResourceDefinitions, with the texts of the API server."""

import copy
from typing import Any

import pytest

from simcluster.tests.contract.causes import causes
from simcluster.tests.contract.custom_objects import DEFINITIONS, definition, version
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


STRING: Json = {"type": "string"}
EMPTY, UNDEFINED = "Forbidden: must be empty to be structural", "must be undefined to be structural"
IS_FALSE = "Forbidden: must be false to be structural"


def key_of(schema: Json) -> Json:
    """A list whose items are told apart by a property of this schema."""
    items = {"type": "object", "required": ["a"], "properties": {"a": schema}}
    return {**KEYED, "x-kubernetes-list-map-keys": ["a"], "items": items}


@pytest.mark.parametrize(
    ("schema", "field", "message"),
    [
        ({**STRING, "anyOf": [{"type": "string"}]}, "anyOf[0].type", EMPTY),
        ({**STRING, "allOf": [{"title": "x"}]}, "allOf[0].title", EMPTY),
        ({**STRING, "oneOf": [{"default": "x"}]}, "oneOf[0].default", f"Forbidden: {UNDEFINED}"),
        ({**STRING, "not": {"nullable": True}}, "not.nullable", IS_FALSE),
        (
            {
                "type": "object",
                "properties": {"b": STRING},
                "anyOf": [{"properties": {"b": {"type": "string"}}}],
            },
            "anyOf[0].properties[b].type",
            EMPTY,
        ),
        (
            {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}]},
            "anyOf[0].type",
            EMPTY,
        ),
        ({"type": "object", "id": "x"}, "id", "Forbidden: id is not supported"),
        (
            {"type": "array", "items": [STRING]},
            "items",
            "Forbidden: items must be a schema object and not an array",
        ),
        (
            {"type": "object", "default": {"c": 1}, "properties": {"b": STRING}},
            "default",
            'Invalid value: {"c":1}: must not have unknown fields',
        ),
        (
            {"type": "array", "items": STRING, "x-kubernetes-list-type": "bag"},
            "x-kubernetes-list-type",
            'Unsupported value: "bag": supported values: "atomic", "set", "map"',
        ),
        (
            {"type": "array", "items": STRING, "x-kubernetes-list-map-keys": ["a"]},
            "x-kubernetes-list-type",
            "Required value: must be map if x-kubernetes-list-map-keys is non-empty",
        ),
        (
            {**KEYED, "x-kubernetes-list-map-keys": ["a"], "items": STRING},
            "items.type",
            (
                'Invalid value: "string": must be object if parent array\'s '
                "x-kubernetes-list-type is map"
            ),
        ),
        (
            key_of({"type": "object"}),
            "items.properties[a].type",
            (
                'Invalid value: "object": must be a scalar type if parent array\'s '
                "x-kubernetes-list-type is map"
            ),
        ),
        (
            key_of({**STRING, "nullable": True}),
            "items.properties[a].nullable",
            ("Forbidden: this property is in x-kubernetes-list-map-keys, so it cannot be nullable"),
        ),
        (
            {**key_of(STRING), "x-kubernetes-list-map-keys": ["a", "a"]},
            "x-kubernetes-list-map-keys",
            'Invalid value: ["a","a"]: must not contain duplicate entries',
        ),
        (
            {"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "set"},
            "items.x-kubernetes-map-type",
            (
                "Invalid value: null: must be atomic as item of a list with "
                "x-kubernetes-list-type=set"
            ),
        ),
        (
            {**STRING, "x-kubernetes-map-type": "atomic"},
            "type",
            'Invalid value: "string": must be object if x-kubernetes-map-type is specified',
        ),
    ],
)
async def test_parts_of_a_schema_must_be_structural(
    http: ApiClient, schema: Json, field: str, message: str
) -> None:
    reply = await http.post(PATH, tools(schema))
    assert [found[1:] for found in causes(reply)] == [(f"{ROOT}.{field}", message)]


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("[a-", "missing closing ]: `[a-`"),
        ("(a", "missing closing ): `(a`"),
        ("*", "missing argument to repetition operator: `*`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("a{2,1}", "invalid repeat count: `{2,1}`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
    ],
)
async def test_a_pattern_is_a_regular_expression_of_go(
    http: ApiClient, pattern: str, why: str
) -> None:
    reply = await http.post(PATH, tools({**STRING, "pattern": pattern}))
    told = f"must be a valid regular expression, but isn't: error parsing regexp: {why}"
    assert [found[1:] for found in causes(reply)] == [
        (f"{ROOT}.pattern", f'Invalid value: "{pattern}": {told}')
    ]


NO_OTHERS = (
    "Forbidden: must not specify anything other than name and generateName, but metadata is "
    "implicitly specified"
)


@pytest.mark.parametrize(
    ("change_of_root", "field", "message"),
    [
        ({"nullable": True}, "nullable", "Forbidden: nullable cannot be true at the root"),
        (
            {"properties": {"metadata": {"type": "object", "required": ["name"]}}},
            "properties[metadata]",
            NO_OTHERS,
        ),
        (
            {"properties": {"metadata": {"type": "object", "properties": {"labels": STRING}}}},
            "properties[metadata]",
            NO_OTHERS,
        ),
        (
            {"properties": {"kind": {"type": "integer"}}},
            "properties[kind].type",
            'Invalid value: "integer": must be string',
        ),
        (
            {"properties": {"apiVersion": {**STRING, "default": "x"}}},
            "properties[apiVersion].default",
            "Forbidden: must not be set in top-level apiVersion",
        ),
    ],
)
async def test_the_root_of_a_schema_leaves_type_and_metadata_alone(
    http: ApiClient, change_of_root: Json, field: str, message: str
) -> None:
    body = tools()
    del body["spec"]["versions"][0]["subresources"]
    body["spec"]["versions"][0]["schema"]["openAPIV3Schema"].update(change_of_root)
    place = ROOT.removesuffix("properties[spec]")
    assert [found[1:] for found in causes(await http.post(PATH, body))] == [
        (f"{place}{field}", message)
    ]


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        ([".spec.a", ".spec.n", ".spec.m.key"], ""),
        ([""], "Required value"),
        (["spec.a"], 'Invalid value: "spec.a": is an invalid path: expected [ or . but got: spec'),
        (["."], 'Invalid value: ".": is an invalid path: unexpected end of JSON path'),
        ([".no"], 'Invalid value: ".no": is an invalid path: does not refer to a valid field'),
        (
            [".spec['a']"],
            "Invalid value: \".spec['a']\": is an invalid path: array notation is not allowed",
        ),
        (
            [".spec.m"],
            (
                'Invalid value: ".spec.m": must point to a field of type string, boolean or '
                "integer. Enum string fields and strings with formats are allowed."
            ),
        ),
        ([".spec.a", ".spec.a"], 'Duplicate value: ".spec.a"'),
    ],
)
async def test_a_selectable_field_is_a_path_to_a_scalar(
    http: ApiClient, paths: list[str], message: str
) -> None:
    properties = {
        "a": STRING,
        "n": {"type": "integer"},
        "m": {"type": "object", "additionalProperties": STRING},
    }
    body = tools({"type": "object", "properties": properties})
    body["spec"]["versions"][0]["selectableFields"] = [{"jsonPath": path} for path in paths]
    reply = await http.post(PATH, body)
    assert reply.status == (422 if message else 201)
    if message:
        field = f"spec.selectableFields[{len(paths) - 1}].jsonPath"
        assert [found[1:] for found in causes(reply)] == [(field, message)]


@pytest.mark.parametrize(
    ("path", "value", "field", "message"),
    [
        (
            "versions.0.additionalPrinterColumns",
            [{"name": "a", "type": "string", "jsonPath": "a"}],
            "spec.additionalPrinterColumns[0].JSONPath",
            'Invalid value: "a": must be a simple json path starting with .',
        ),
        (
            "versions.0.subresources",
            {
                "scale": {
                    "specReplicasPath": ".spec.n",
                    "statusReplicasPath": ".status.n",
                    "labelSelectorPath": "n",
                }
            },
            "spec.subresources.scale.labelSelectorPath",
            'Invalid value: "n": must be a simple json path starting with .',
        ),
        (
            "versions.0.deprecationWarning",
            "",
            "spec.versions[0].deprecationWarning",
            'Invalid value: "": must not be an empty string',
        ),
        (
            "versions.0.deprecationWarning",
            "a\nb",
            "spec.versions[0].deprecationWarning",
            (
                'Invalid value: "a\\nb": must only contain printable UTF-8 characters; '
                "non-printable character found at index 1"
            ),
        ),
    ],
)
async def test_a_path_or_a_warning_of_a_version_must_be_well_formed(
    http: ApiClient, path: str, value: Any, field: str, message: str
) -> None:
    body = change(tools(), path, value)
    body["spec"]["versions"][0]["deprecated"] = True
    reply = await http.post(PATH, body)
    assert [found[1:] for found in causes(reply)] == [(field, message)]


@pytest.mark.parametrize(
    ("approval", "is_approved"),
    [("", False), ("soon", False), ("unapproved, a test", True), ("https://a.example/1", True)],
)
async def test_a_group_of_kubernetes_needs_an_approval(
    http: ApiClient, approval: str, is_approved: bool
) -> None:
    stored = tools()["spec"]["versions"][0]
    body = copy.deepcopy(definition("Tool", "tests.k8s.io", stored))
    body["metadata"]["annotations"] = {"api-approved.kubernetes.io": approval}
    reply = await http.post(PATH, body)
    assert reply.status == (201 if is_approved else 422)
    if not is_approved:
        [(_, field, _)] = causes(reply)
        assert field == "metadata.annotations[api-approved.kubernetes.io]"


async def test_the_status_of_a_new_definition_is_ignored(http: ApiClient) -> None:
    reply = await http.post(PATH, {**tools(), "status": {"conditions": []}})
    assert (reply.status, reply.body["status"]["storedVersions"]) == (201, ["v1"])


async def test_selectable_fields_may_differ_only_where_the_schemas_do(http: ApiClient) -> None:
    body = tools({"type": "object", "properties": {"a": STRING}})
    first = body["spec"]["versions"][0]
    body["spec"]["versions"].append({**copy.deepcopy(first), "name": "v2", "storage": False})
    first["selectableFields"] = [{"jsonPath": ".spec.a"}]
    assert [found[1:] for found in causes(await http.post(PATH, body))] == [
        (
            "spec.versions[0].selectableFields",
            (
                'Invalid value: "": may only be set when `version.schema.openAPIV3Schema` is not '
                "included"
            ),
        )
    ]
    spec = body["spec"]["versions"][1]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["description"] = "new"
    assert (await http.post(PATH, body)).status == 201
