"""Custom resources: definition, discovery, validation, watches and deletion."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from simcluster.tests.contract.custom_objects import (
    DEFINITIONS,
    WIDGET,
    WIDGETS,
    define,
    definition,
    until_gone,
    version,
    widget,
)
from simcluster.tests.contract.requests import apply
from simcluster.tests.support.api_client import JSON_PATCH, MERGE, STRATEGIC, ApiClient, Reply
from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S

Json = dict[str, Any]

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@pytest.fixture
async def widgets(http: ApiClient) -> AsyncIterator[ApiClient]:
    """A client of a server that serves widgets; the first test that uses it defines them."""
    if (await http.get(f"{DEFINITIONS}/widgets.example.com")).status == 404:
        await define(http, WIDGET)
    yield http
    await http.delete(WIDGETS)


def causes(reply: Reply) -> dict[str, tuple[str, str]]:
    """Reasons and messages of a 422 by field."""
    assert (reply.status, reply.body["reason"]) == (422, "Invalid"), reply.text
    found = reply.body["details"]["causes"]
    return {each["field"]: (each["reason"], each["message"]) for each in found}


async def test_a_definition_gets_defaults_and_is_established(widgets: ApiClient) -> None:
    found = (await widgets.get(f"{DEFINITIONS}/widgets.example.com")).body
    assert found["spec"]["conversion"] == {"strategy": "None"}
    names = found["spec"]["names"]
    assert (names["singular"], names["listKind"]) == ("widget", "WidgetList")
    assert found["status"]["storedVersions"] == ["v1"]
    assert found["status"]["acceptedNames"] == names
    reasons = {each["type"]: each["reason"] for each in found["status"]["conditions"]}
    assert reasons == {"NamesAccepted": "NoConflicts", "Established": "InitialNamesAccepted"}
    assert found["metadata"]["generation"] == 1


async def test_the_defined_kind_is_discovered(widgets: ApiClient) -> None:
    group = (await widgets.get("/apis/example.com")).body
    assert [found["version"] for found in group["versions"]] == ["v1", "v1beta1"]
    assert group["preferredVersion"]["version"] == "v1"
    resources = (await widgets.get("/apis/example.com/v1")).body["resources"]
    listed = {found["name"]: found for found in resources}
    assert set(listed) == {"widgets", "widgets/status", "widgets/scale"}
    assert listed["widgets"]["shortNames"] == ["wd"]
    assert sorted(listed["widgets"]["verbs"]) == [
        "create", "delete", "deletecollection", "get", "list", "patch", "update", "watch",
    ]  # fmt: skip
    assert listed["widgets/scale"]["kind"] == "Scale"


async def test_the_fields_of_a_custom_resource_are_in_the_openapi_document(
    widgets: ApiClient,
) -> None:
    async with asyncio.timeout(WAIT_TIMEOUT_S):
        while True:
            index = (await widgets.get("/openapi/v3")).body["paths"]
            if "apis/example.com/v1" in index:
                break
            await asyncio.sleep(0.05)
    url = index["apis/example.com/v1"]["serverRelativeURL"]
    schemas = (await widgets.get(url)).body["components"]["schemas"]
    schema = schemas["com.example.v1.Widget"]
    assert schema["properties"]["spec"]["properties"]["size"]["description"] == "How big."
    gvk = {"group": "example.com", "kind": "Widget", "version": "v1"}
    assert schema["x-kubernetes-group-version-kind"] == [gvk]


async def test_defaults_are_set_and_unknown_fields_are_dropped(widgets: ApiClient) -> None:
    made = await widgets.create(
        WIDGETS, widget("a", unknown=1, free={"x": {"y": 1}}, parts=[{"id": "p", "no": 1}])
    )
    assert made["spec"] == {
        "size": 3,
        "color": "red",
        "replicas": 1,
        "free": {"x": {"y": 1}},
        "parts": [{"id": "p", "on": True}],
    }
    assert (made["kind"], made["apiVersion"]) == ("Widget", "example.com/v1")
    assert made["metadata"]["generation"] == 1
    assert "status" not in made


async def test_schema_violations_are_refused_field_by_field(widgets: ApiClient) -> None:
    reply = await widgets.post(
        WIDGETS,
        widget(
            "bad",
            size=11,
            color="green",
            alias="UPPER",
            parts=[{"id": "p"}, {"id": "p"}],
            replicas="two",
            labels={"a": 1},
        ),
    )
    found = causes(reply)
    below = "Invalid value: 11: spec.size in body should be less than or equal to 10"
    assert found["spec.size"] == ("FieldValueInvalid", below)
    unsupported = 'Unsupported value: "green": supported values: "red", "blue"'
    assert found["spec.color"] == ("FieldValueNotSupported", unsupported)
    pattern = "Invalid value: \"UPPER\": spec.alias in body should match '^[a-z]+$'"
    assert found["spec.alias"] == ("FieldValueInvalid", pattern)
    wrong = 'Invalid value: "string": spec.replicas in body must be of type integer: "string"'
    assert found["spec.replicas"] == ("FieldValueTypeInvalid", wrong)
    assert reply.body["message"].startswith('Widget.example.com "bad" is invalid: [')


async def test_a_missing_required_field_is_refused(widgets: ApiClient) -> None:
    reply = await widgets.post(WIDGETS, {**widget("bad"), "spec": {}})
    assert causes(reply) == {"spec.size": ("FieldValueRequired", "Required value")}
    assert reply.body["message"] == 'Widget.example.com "bad" is invalid: spec.size: Required value'


async def test_the_status_is_written_only_through_its_subresource(widgets: ApiClient) -> None:
    made = await widgets.create(WIDGETS, {**widget("a"), "status": {"replicas": 9}})
    assert "status" not in made
    changed = {**made, "status": {"replicas": 2}, "spec": {"size": 9}}
    changed["metadata"] = {**made["metadata"], "labels": {"a": "b"}}
    reply = await widgets.put(f"{WIDGETS}/a/status", changed)
    assert reply.body["status"] == {"replicas": 2}
    assert reply.body["spec"]["size"] == 3
    assert "labels" not in reply.body["metadata"]
    assert reply.body["metadata"]["generation"] == 1
    reply = await widgets.patch(f"{WIDGETS}/a", {"spec": {"size": 4}, "status": {}}, MERGE)
    assert reply.body["status"] == {"replicas": 2}
    assert reply.body["metadata"]["generation"] == 2


async def test_the_scale_subresource_reads_and_sets_the_configured_fields(
    widgets: ApiClient,
) -> None:
    await widgets.create(WIDGETS, widget("a"))
    status = {"status": {"replicas": 1, "selector": "app=a"}}
    await widgets.patch(f"{WIDGETS}/a/status", status, MERGE)
    scale = (await widgets.get(f"{WIDGETS}/a/scale")).body
    assert (scale["kind"], scale["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert scale["spec"] == {"replicas": 1}
    assert scale["status"] == {"replicas": 1, "selector": "app=a"}
    scale["spec"]["replicas"] = 5
    assert (await widgets.put(f"{WIDGETS}/a/scale", scale)).status == 200
    assert (await widgets.get(f"{WIDGETS}/a")).body["spec"]["replicas"] == 5


async def test_an_unknown_subresource_of_a_widget_is_not_found(widgets: ApiClient) -> None:
    reply = await widgets.get(f"{WIDGETS}/one/nosuch")
    assert (reply.status, reply.body["reason"]) == (404, "NotFound")
    assert reply.body["message"] == 'widgets.example.com "one" not found'
    other = await widgets.get(f"{WIDGETS.removesuffix('widgets')}gadgets")
    assert (other.status, other.text) == (404, "404 page not found\n")


async def test_strategic_merge_patches_are_refused(widgets: ApiClient) -> None:
    await widgets.create(WIDGETS, widget("a"))
    operation = [{"op": "replace", "path": "/spec/size", "value": 5}]
    reply = await widgets.patch(f"{WIDGETS}/a", operation, JSON_PATCH)
    assert reply.body["spec"]["size"] == 5
    reply = await widgets.patch(f"{WIDGETS}/a", {"spec": {"size": 6}}, STRATEGIC)
    assert (reply.status, reply.body["reason"]) == (415, "UnsupportedMediaType")


async def test_an_update_without_a_resource_version_is_refused(widgets: ApiClient) -> None:
    made = await widgets.create(WIDGETS, widget("a"))
    reply = await widgets.put(f"{WIDGETS}/a", widget("a"))
    assert (reply.status, "metadata.resourceVersion" in reply.body["message"]) == (422, True)
    await widgets.patch(f"{WIDGETS}/a", {"spec": {"size": 4}}, MERGE)
    stale = await widgets.put(f"{WIDGETS}/a", made)
    assert (stale.status, stale.body["reason"]) == (409, "Conflict")
    assert stale.body["details"] == {"name": "a", "group": "example.com", "kind": "widgets"}


async def test_a_deprecated_version_serves_the_same_objects_with_a_warning(
    widgets: ApiClient,
) -> None:
    await widgets.create(WIDGETS, widget("a"))
    reply = await widgets.get(WIDGETS.replace("/v1/", "/v1beta1/"))
    assert reply.body["apiVersion"] == "example.com/v1beta1"
    assert reply.body["kind"] == "WidgetList"
    assert [found["metadata"]["name"] for found in reply.body["items"]] == ["a"]
    warning = '299 - "example.com/v1beta1 Widget is deprecated"'
    assert reply.headers["Warning"] == warning


async def test_custom_resources_can_be_watched(widgets: ApiClient) -> None:
    query = f"resourceVersion={await widgets.revision(WIDGETS)}"
    async with widgets.watch(WIDGETS, query) as watch:
        await widgets.create(WIDGETS, widget("a"))
        await widgets.patch(f"{WIDGETS}/a/status", {"status": {"replicas": 1}}, MERGE)
        deleted = await widgets.delete(f"{WIDGETS}/a")
        events = await watch.take(3)
    assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "DELETED"]
    assert all(event["object"]["kind"] == "Widget" for event in events)
    assert deleted.body["details"]["kind"] == "widgets"


async def test_a_custom_resource_stays_until_its_finalizers_are_removed(widgets: ApiClient) -> None:
    held = widget("held")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    await widgets.create(WIDGETS, held)
    marked = await widgets.delete(f"{WIDGETS}/held")
    assert marked.body["metadata"]["deletionTimestamp"]
    await widgets.patch(f"{WIDGETS}/held", {"metadata": {"finalizers": None}}, MERGE)
    assert (await widgets.get(f"{WIDGETS}/held")).status == 404


async def test_printer_columns_become_table_columns(widgets: ApiClient) -> None:
    await widgets.create(WIDGETS, widget("a"))
    condition = {"type": "Ready", "status": "True"}
    await widgets.patch(f"{WIDGETS}/a/status", {"status": {"conditions": [condition]}}, MERGE)
    table = (await widgets.get(WIDGETS, TABLE)).body
    columns = table["columnDefinitions"]
    assert [column["name"] for column in columns] == ["Name", "Size", "Ready", "Age", "Color"]
    assert [column["type"] for column in columns[1:]] == ["integer", "string", "date", "string"]
    assert columns[1]["description"] == "Its size"
    assert columns[4]["priority"] == 1
    (row,) = table["rows"]
    assert row["cells"][:3] == ["a", 3, "True"]
    assert row["cells"][4] == "red"


async def test_unknown_fields_are_reported_with_field_validation(widgets: ApiClient) -> None:
    strict = await widgets.post(f"{WIDGETS}?fieldValidation=Strict", widget("a", unknown=1))
    assert (strict.status, strict.body["reason"]) == (400, "BadRequest")
    assert 'strict decoding error: unknown field "spec.unknown"' in strict.body["message"]
    twice = json.dumps(widget("a", unknown=1)).replace('"unknown"', '"unknown": 0, "unknown"')
    refused = await widgets.post(f"{WIDGETS}?fieldValidation=Strict", twice.encode())
    assert refused.body["message"].endswith(
        'strict decoding error: duplicate field "spec.unknown", unknown field "spec.unknown"'
    )
    warned = await widgets.post(f"{WIDGETS}?fieldValidation=Warn", widget("a", unknown=1))
    assert warned.status == 201
    assert warned.headers["Warning"] == '299 - "unknown field \\"spec.unknown\\""'


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"metadata": {"name": "wrong.example.org"}}, "metadata.name"),
        ({"metadata": {"name": ""}}, "metadata.name"),
        ({"spec": {"scope": "Everywhere"}}, "spec.scope"),
        ({"spec": {"versions": [{"storage": True}]}}, "spec.versions[0].name"),
    ],
)
async def test_an_inconsistent_definition_is_refused(
    http: ApiClient, change: Json, field: str
) -> None:
    body = definition("Broken", "example.org", version("v1", storage=True))
    for part, values in change.items():
        body[part] |= values
    assert field in causes(await http.post(DEFINITIONS, body))


async def test_a_definition_needs_schemas_with_types(http: ApiClient) -> None:
    typeless = {"openAPIV3Schema": {"type": "object", "properties": {"spec": {}}}}
    body = definition("Broken", "example.org", version("v1", storage=True, schema=typeless))
    field = "spec.validation.openAPIV3Schema.properties[spec].type"
    message = "Required value: must not be empty for specified object fields"
    assert causes(await http.post(DEFINITIONS, body))[field] == (
        "FieldValueRequired",
        message,
    )


async def test_an_error_of_a_schema_that_not_all_versions_have_names_the_version(
    http: ApiClient,
) -> None:
    typeless = {"openAPIV3Schema": {"type": "object", "properties": {"spec": {}}}}
    versions = version("v1", storage=True), version("v2", schema=typeless)
    field = "spec.versions[1].schema.openAPIV3Schema.properties[spec].type"
    assert field in causes(await http.post(DEFINITIONS, definition("Broken", "a.org", *versions)))


async def test_cluster_scoped_resources_have_no_namespace(http: ApiClient) -> None:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    plain = version("v1", storage=True, schema=schema, subresources={})
    await define(http, definition("Globe", "example.net", plain, scope="Cluster"))
    path = "/apis/example.net/v1/globes"
    body = {"apiVersion": "example.net/v1", "kind": "Globe", "metadata": {"name": "g"}}
    made = await http.create(path, {**body, "anything": [1], "status": {"now": 1}})
    assert (made["anything"], made["status"]) == ([1], {"now": 1})
    assert "namespace" not in made["metadata"]
    changed = await http.patch(f"{path}/g", {"status": {"now": 2}}, MERGE)
    assert changed.body["metadata"]["generation"] == 2
    assert (await http.get(f"{path}/g/status")).status == 404
    await http.delete(f"{DEFINITIONS}/globes.example.net")
    await until_gone(http, "globes.example.net")
    assert (await http.get(path)).status == 404


async def test_deleting_a_definition_deletes_its_objects(http: ApiClient) -> None:
    body = definition("Leaf", "example.edu", version("v1", storage=True))
    body["metadata"]["name"], body["spec"]["names"]["plural"] = "leaves.example.edu", "leaves"
    await define(http, body)
    path = "/apis/example.edu/v1/namespaces/default/leaves"
    leaf = {**widget("l"), "apiVersion": "example.edu/v1", "kind": "Leaf"}
    await http.create(path, leaf)
    query = f"resourceVersion={await http.revision(path)}"
    async with http.watch(path, query) as watch:
        await http.delete(f"{DEFINITIONS}/leaves.example.edu")
        assert (await watch.next())["type"] == "DELETED"
    await until_gone(http, "leaves.example.edu")
    assert (await http.get(path)).status == 404


async def test_fields_of_applied_custom_resources_have_separate_managers(
    widgets: ApiClient,
) -> None:
    path = f"{WIDGETS}/owned"
    first = await apply(widgets, path, widget("owned", parts=[{"id": "a"}]))
    assert (first.status, first.body["spec"]["color"]) == (201, "red")
    other = widget("owned", parts=[{"id": "b"}])
    del other["spec"]["size"]
    second = await apply(widgets, path, other, "other")
    assert [part["id"] for part in second.body["spec"]["parts"]] == ["a", "b"]
    taken = await apply(widgets, path, widget("owned", size=4), "other")
    assert (taken.status, taken.body["reason"]) == (409, "Conflict")
    assert ".spec.size" in taken.body["message"]
    unknown = await apply(widgets, path, widget("owned", weight=1))
    assert ".spec.weight: field not declared in schema" in unknown.body["message"]


async def test_definitions_can_be_server_side_applied(http: ApiClient) -> None:
    made = definition("Gadget", "apply.example.com", version("v1", storage=True))
    path = f"{DEFINITIONS}/{made['metadata']['name']}"
    assert (await apply(http, path, made)).status == 201
    assert (await apply(http, path, made)).status == 200
    assert (await http.delete(path)).status == 200


async def test_custom_resources_are_selected_by_the_selectable_fields_of_their_definition(
    widgets: ApiClient,
) -> None:
    for name, color in (("one", "red"), ("two", "blue")):
        await widgets.create(WIDGETS, widget(name, color=color))
    found = (await widgets.get(f"{WIDGETS}?fieldSelector=spec.color=blue")).body["items"]
    assert [each["metadata"]["name"] for each in found] == ["two"]
    refused = await widgets.get(f"{WIDGETS}?fieldSelector=spec.size=3")
    assert refused.status == 400
    assert "field label not supported: spec.size" in refused.text


async def test_the_metadata_of_custom_resources_is_validated(widgets: ApiClient) -> None:
    wrong = widget("typed")
    wrong["metadata"]["labels"] = {"a": 1}
    assert (await widgets.request("POST", WIDGETS, wrong)).status == 400
    await widgets.create(WIDGETS, widget("typed"))
    patch = {"metadata": {"labels": {"a": 1}}}
    refused = await widgets.request("PATCH", f"{WIDGETS}/typed", patch, MERGE)
    assert refused.status in {400, 422}


async def test_the_creator_of_a_custom_resource_owns_its_spec(widgets: ApiClient) -> None:
    made = await widgets.create(f"{WIDGETS}?fieldManager=maker&dryRun=All", widget("owned"))
    entry = made["metadata"]["managedFields"][0]
    assert (entry["manager"], entry["operation"]) == ("maker", "Update")
    assert entry["fieldsV1"]["f:spec"]["."] == {}
