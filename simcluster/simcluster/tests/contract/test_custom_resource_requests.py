"""Requests on custom resources: their handler differs from that of built-in kinds."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from simcluster.tests.contract.causes import causes
from simcluster.tests.contract.custom_objects import define, definition, version
from simcluster.tests.contract.requests import apply
from simcluster.tests.support.api_client import MERGE, ApiClient

Json = dict[str, Any]

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GADGETS = "/apis/tools.example.com/v1/namespaces/default/gadgets"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
UNKNOWN_FORMAT = (
    "the body of the request was in an unknown format - accepted media types include: "
    "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
)
NOT_CHECKED = (
    "Invalid value: null: some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)
SPEC: Json = {
    "type": "object",
    "properties": {
        "size": {"type": "integer", "minimum": 0, "maximum": 10, "default": 1},
        "code": {"type": "string", "maxLength": 3, "pattern": "^[a-z]*$"},
        "tags": {
            "type": "array",
            "items": {"type": "string"},
            "x-kubernetes-list-type": "set",
        },
        "ports": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": {"type": "string"}},
            },
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
        },
        "maybe": {"type": "string", "nullable": True},
    },
    "x-kubernetes-validations": [{"rule": "self.size != 7", "message": "not seven"}],
}
SCALE = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}
GADGET = definition(
    "Gadget",
    "tools.example.com",
    version(
        "v1",
        storage=True,
        schema={
            "openAPIV3Schema": {
                "type": "object",
                "properties": {
                    "spec": SPEC,
                    "status": {"type": "object", "properties": {"size": {"type": "integer"}}},
                },
            }
        },
        subresources={"status": {}, "scale": SCALE},
    ),
)


def gadget(name: str = "a", **spec: Any) -> Json:
    """A gadget."""
    return {
        "apiVersion": "tools.example.com/v1",
        "kind": "Gadget",
        "metadata": {"name": name},
        "spec": spec,
    }


@pytest.fixture
async def gadgets(http: ApiClient) -> AsyncIterator[ApiClient]:
    """A client of a server that serves gadgets."""
    if (await http.get(f"{DEFINITIONS}/gadgets.tools.example.com")).status == 404:
        await define(http, GADGET)
    yield http
    await http.delete(GADGETS)


async def test_items_of_a_list_have_their_kind(gadgets: ApiClient) -> None:
    await gadgets.create(GADGETS, gadget())
    listed = (await gadgets.get(GADGETS)).body
    assert listed["metadata"]["continue"] == ""
    (item,) = listed["items"]
    assert (item["kind"], item["apiVersion"]) == ("Gadget", "tools.example.com/v1")


async def test_the_items_of_an_empty_list_of_metadata_are_null(gadgets: ApiClient) -> None:
    assert (await gadgets.get(GADGETS, METADATA_LIST)).body["items"] is None
    assert (await gadgets.get(GADGETS, TABLE)).body["rows"] == []


@pytest.mark.parametrize(
    ("method", "path", "status", "message"),
    [
        (
            "POST",
            f"{GADGETS}/a/status",
            405,
            'create is not supported on resources of kind "gadgets.tools.example.com"',
        ),
        (
            "DELETE",
            f"{GADGETS}/a/scale",
            405,
            'delete is not supported on resources of kind "gadgets.tools.example.com"',
        ),
        (
            "OPTIONS",
            f"{GADGETS}/a",
            405,
            ' is not supported on resources of kind "gadgets.tools.example.com"',
        ),
        ("PUT", GADGETS, 400, "name must be provided"),
        ("PATCH", GADGETS, 415, UNKNOWN_FORMAT),
    ],
)
async def test_unsupported_verbs_are_refused_by_name(
    gadgets: ApiClient, method: str, path: str, status: int, message: str
) -> None:
    reply = await gadgets.request(method, path, gadget() if method[0] == "P" else None)
    assert (reply.status, reply.body["message"]) == (status, message)


async def test_an_object_can_be_posted_to_its_own_path(gadgets: ApiClient) -> None:
    assert (await gadgets.post(f"{GADGETS}/a", gadget())).status == 201
    assert (await gadgets.post(f"{GADGETS}/a", gadget())).status == 409


async def test_head_is_answered_like_get(gadgets: ApiClient) -> None:
    assert (await gadgets.request("HEAD", f"{GADGETS}/a")).status == 404
    assert (await gadgets.request("HEAD", GADGETS)).status == 200


@pytest.mark.parametrize("method", ["POST", "DELETE"])
async def test_a_write_without_a_namespace_is_not_found(gadgets: ApiClient, method: str) -> None:
    reply = await gadgets.request(method, "/apis/tools.example.com/v1/gadgets", None)
    assert (reply.status, reply.text) == (404, "404 page not found\n")


@pytest.mark.parametrize(
    ("changes", "status", "message"),
    [
        (
            {"apiVersion": "tools.example.com/v2"},
            400,
            (
                "the API version in the data (tools.example.com/v2) does not match the expected "
                "API "
                "version (tools.example.com/v1)"
            ),
        ),
        (
            {"apiVersion": ""},
            400,
            (
                "the API version in the data () does not match the expected API version "
                "(tools.example.com/v1)"
            ),
        ),
        (
            {"kind": "Tool"},
            422,
            'Tool.tools.example.com "a" is invalid: kind: Invalid value: "Tool": must be Gadget',
        ),
        (
            {"metadata": "x"},
            400,
            (
                'Gadget in version "v1" cannot be handled as a Gadget: json: cannot unmarshal '
                "string "
                "into Go value of type v1.ObjectMeta"
            ),
        ),
        (
            {"metadata": {"name": "a", "labels": {"x": 1}}},
            400,
            (
                'Gadget in version "v1" cannot be handled as a Gadget: json: cannot unmarshal '
                "number "
                "into Go struct field ObjectMeta.labels of type string"
            ),
        ),
    ],
)
async def test_a_body_of_another_type_is_refused(
    gadgets: ApiClient, changes: Json, status: int, message: str
) -> None:
    reply = await gadgets.post(GADGETS, {**gadget(), **changes})
    assert (reply.status, reply.body["message"]) == (status, message)


async def test_a_body_must_name_its_kind(gadgets: ApiClient) -> None:
    reply = await gadgets.request("POST", GADGETS, b"null", "application/json")
    assert (reply.status, reply.body["message"]) == (
        400,
        (
            "the object provided is unrecognized (must be of type Gadget): Object 'Kind' is "
            "missing in "
            "'null' (6e756c6c)"
        ),
    )


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        (
            {"kind": "Tool"},
            'Tool.tools.example.com "a" is invalid: kind: Invalid value: "Tool": must be Gadget',
        ),
        (
            {"apiVersion": "v7"},
            (
                'Gadget "a" is invalid: apiVersion: Invalid value: "v7": must be '
                "tools.example.com/v1"
            ),
        ),
    ],
)
async def test_a_patch_cannot_change_the_type(
    gadgets: ApiClient, patch: Json, message: str
) -> None:
    await gadgets.create(GADGETS, gadget())
    reply = await gadgets.patch(f"{GADGETS}/a", patch, MERGE)
    assert (reply.status, reply.body["message"]) == (422, message)


async def test_unknown_fields_are_listed_in_order(gadgets: ApiClient) -> None:
    body = {**gadget(wrong=1), "extra": 2}
    reply = await gadgets.post(f"{GADGETS}?fieldValidation=Strict", body)
    assert reply.body["message"].endswith('unknown field "extra", unknown field "spec.wrong"')


async def test_nulls_become_defaults_or_are_dropped(gadgets: ApiClient) -> None:
    created = await gadgets.create(GADGETS, gadget(size=None, tags=None, maybe=None))
    assert created["spec"] == {"size": 1, "maybe": None}


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        ({"code": "ABCDE"}, {"spec.code": "Too long: may not be more than 3 bytes"}),
        (
            {"size": -1},
            {
                "spec.size": "Invalid value: -1: spec.size in body should be greater than or equal "
                "to 0",
                ".spec.size": "Invalid value: -1: should be a non-negative integer",
            },
        ),
        (
            {"size": "x"},
            {
                "spec.size": 'Invalid value: "string": spec.size in body must be of type integer: '
                '"string"',
                ".spec.size": "Invalid value: 0: .spec.size accessor error: x is of the type "
                "string, expected int64",
                "<nil>": NOT_CHECKED,
            },
        ),
    ],
)
async def test_every_check_of_a_value_is_reported(
    gadgets: ApiClient, spec: Json, found: dict[str, str]
) -> None:
    reply = await gadgets.post(GADGETS, gadget(**spec))
    causes = {each["field"]: each["message"] for each in reply.body["details"]["causes"]}
    assert {key: causes.get(key) for key in found} == found


async def test_a_scale_is_validated_as_the_object(gadgets: ApiClient) -> None:
    await gadgets.create(GADGETS, gadget())
    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a"}}
    reply = await gadgets.put(f"{GADGETS}/a/scale", {**scale, "spec": {"replicas": 7}})
    assert (reply.status, reply.body["message"]) == (
        422,
        'Gadget.tools.example.com "a" is invalid: spec: Invalid value: not seven',
    )


async def test_the_owner_of_a_scale_has_no_time(gadgets: ApiClient) -> None:
    await gadgets.create(GADGETS, gadget())
    await gadgets.patch(f"{GADGETS}/a/scale", {"spec": {"replicas": 3}}, MERGE)
    owners = (await gadgets.get(f"{GADGETS}/a")).body["metadata"]["managedFields"]
    assert [each.get("subresource") for each in owners if "time" not in each] == ["scale"]


@pytest.mark.parametrize(
    ("finalizer", "warnings"),
    [
        (
            "mine",
            [
                (
                    'metadata.finalizers: "mine": prefer a domain-qualified finalizer name to '
                    "avoid "
                    "accidental conflicts with other finalizer writers"
                )
            ],
        ),
        (
            "example.com",
            [
                (
                    'metadata.finalizers: "example.com": prefer a domain-qualified finalizer name '
                    "including a path (/) to avoid accidental conflicts with other finalizer "
                    "writers"
                )
            ],
        ),
        ("example.com/mine", []),
    ],
)
async def test_a_finalizer_without_a_domain_causes_a_warning(
    gadgets: ApiClient, finalizer: str, warnings: list[str]
) -> None:
    body = gadget()
    body["metadata"]["finalizers"] = [finalizer]
    assert (await gadgets.post(GADGETS, body)).warnings == warnings
    await gadgets.patch(f"{GADGETS}/a", {"metadata": {"finalizers": None}}, MERGE)


async def test_discovery_lists_the_status_before_the_scale(gadgets: ApiClient) -> None:
    listed = (await gadgets.get("/apis/tools.example.com/v1")).body["resources"]
    assert [each["name"] for each in listed] == ["gadgets", "gadgets/status", "gadgets/scale"]


TYPE_ERRORS: list[tuple[Json, str]] = [
    ({"ports": "x"}, ".spec.ports: expected list, got &{x}"),
    ({"ports": {"a": 1}}, ".spec.ports: expected list, got &{map[a:1]}"),
    ({"ports": [{"name": "x"}] * 2}, '.spec.ports: duplicate entries for key [name="x"]'),
    (
        {"ports": [{}]},
        (
            ".spec.ports: element 0: associative list with keys has an element that omits all key "
            'fields ["name"] (and doesn\'t have default values for any key fields)'
        ),
    ),
    (
        {"ports": [1]},
        ".spec.ports: element 0: associative list with keys may not have non-map elements",
    ),
    (
        {"ports": [{"name": 1}]},
        ".spec.ports[name=1].name: expected string, got &value.valueUnstructured{Value:1}",
    ),
    ({"tags": ["a", "a"]}, '.spec.tags: duplicate entries for key [="a"]'),
    (
        {"tags": [{}]},
        ".spec.tags: element 0: associative list without keys has an element that's a map type",
    ),
    ({"size": "x"}, ".spec.size: expected numeric (int or float), got string"),
    (
        {"code": {"a": 1}},
        (
            ".spec.code: expected string, got "
            '&value.valueUnstructured{Value:map[string]interface {}{"a":1}}'
        ),
    ),
    (
        {"code": 3, "tags": "x"},
        (
            "errors:\n  .spec.code: expected string, got &value.valueUnstructured{Value:3}\n"
            "  .spec.tags: expected list, got &{x}"
        ),
    ),
]


@pytest.mark.parametrize(("spec", "why"), TYPE_ERRORS)
async def test_an_applied_configuration_of_the_wrong_type_is_refused(
    gadgets: ApiClient, spec: Json, why: str
) -> None:
    reply = await apply(gadgets, f"{GADGETS}/a", gadget(**spec))
    place = "/a; tools.example.com/v1, Kind=Gadget"
    assert (reply.status, reply.body["message"]) == (
        500,
        f"failed to create typed patch object ({place}): {why}",
    )


async def test_removing_an_item_of_a_set_counts_as_a_change(gadgets: ApiClient) -> None:
    await apply(gadgets, f"{GADGETS}/a", gadget(tags=["x"]), "one")
    await apply(gadgets, f"{GADGETS}/a", gadget(tags=["y"]), "two")
    reply = await apply(gadgets, f"{GADGETS}/a", gadget(), "one")
    assert reply.body["spec"]["tags"] == ["y"]
    assert reply.body["metadata"]["generation"] == 3


async def test_unknown_fields_of_the_metadata_are_reported(gadgets: ApiClient) -> None:
    body = gadget()
    body["metadata"]["wrong"] = 1
    reply = await gadgets.post(f"{GADGETS}?dryRun=All", body)
    assert (reply.status, reply.warnings) == (201, ['unknown field "metadata.wrong"'])
    assert (await gadgets.post(f"{GADGETS}?fieldValidation=Strict", body)).status == 400


async def test_an_apply_of_the_status_owns_the_status_only(gadgets: ApiClient) -> None:
    await gadgets.create(GADGETS, gadget())
    config = {**gadget(), "status": {"size": 2}}
    config["metadata"]["labels"] = {"a": "b"}
    reply = await apply(gadgets, f"{GADGETS}/a/status", config, "one")
    (applied, _) = reply.body["metadata"]["managedFields"]
    assert applied["fieldsV1"] == {"f:status": {"f:size": {}}}


async def test_a_list_of_metadata_is_no_answer_to_a_get(gadgets: ApiClient) -> None:
    await gadgets.create(GADGETS, gadget())
    reply = await gadgets.get(f"{GADGETS}/a", METADATA_LIST)
    assert (reply.status, reply.body["message"]) == (500, "content is not a list")


@pytest.mark.parametrize("revision", [None, "", "0"])
async def test_every_update_must_name_the_revision_it_changes(
    gadgets: ApiClient, revision: str | None
) -> None:
    await gadgets.create(GADGETS, gadget())
    body = gadget()
    if revision is not None:
        body["metadata"]["resourceVersion"] = revision
    replies = [
        await gadgets.put(f"{GADGETS}/a", body),
        await gadgets.put(f"{GADGETS}/a/status", body),
        await gadgets.patch(f"{GADGETS}/a", {"metadata": {"resourceVersion": revision}}, MERGE),
    ]
    for reply in replies:
        assert (reply.status, reply.body["message"]) == (
            422,
            (
                'gadgets.tools.example.com "a" is invalid: metadata.resourceVersion: Invalid '
                "value: 0: must be specified for an update"
            ),
        )


async def test_rules_are_not_checked_for_an_object_without_a_name(gadgets: ApiClient) -> None:
    body = gadget()
    del body["metadata"]["name"]
    assert causes(await gadgets.post(GADGETS, body)) == [
        (
            "FieldValueRequired",
            "metadata.name",
            "Required value: name or generateName is required",
        ),
        ("FieldValueInvalid", "<nil>", NOT_CHECKED),
    ]


async def test_whole_numbers_are_written_without_a_point(http: ApiClient) -> None:
    spec = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    await define(
        http, definition("Float", "tools.example.com", version("v1", storage=True, schema=schema))
    )
    text = (
        '{"apiVersion":"tools.example.com/v1","kind":"Float","metadata":{"name":"a"},"spec":'
        '{"a":1.0,"b":[2e3,0.5],"c":99999999999999999999,"d":18446744073709551615,"e":1e21}}'
    )
    path = GADGETS.replace("gadgets", "floats")
    expected = (
        '"spec":{"a":1,"b":[2000,0.5],"c":100000000000000000000,"d":18446744073709552000,"e":1e21}'
    )
    created = await http.post(path, text.encode())
    assert expected in created.text.replace("1e+21", "1e21")
    await http.delete(path)
    await http.delete(f"{DEFINITIONS}/floats.tools.example.com")


async def test_unknown_fields_of_a_patch_are_listed_in_order(gadgets: ApiClient) -> None:
    await gadgets.create(GADGETS, gadget())
    patch = {"spec": {"zz": 1}, "bogus": 2}
    reply = await gadgets.patch(f"{GADGETS}/a?fieldValidation=Warn", patch, MERGE)
    assert reply.warnings == ['unknown field "bogus"', 'unknown field "spec.zz"']


async def test_a_patch_of_a_collection_lacks_a_name(gadgets: ApiClient) -> None:
    reply = await gadgets.patch(GADGETS, gadget(), MERGE)
    assert (reply.status, reply.body["message"]) == (400, "name must be provided")
