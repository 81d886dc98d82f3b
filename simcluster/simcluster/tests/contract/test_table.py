"""Table answers, and answers with metadata only."""

from typing import Any

import pytest

from simcluster.tests.contract.requests import DEPLOYMENTS, deployment
from simcluster.tests.support.api_client import (
    CONFIG_MAPS,
    MERGE,
    NODES,
    PODS,
    ApiClient,
    config_map,
    node,
    pod,
)

Json = dict[str, Any]

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


async def columns(http: ApiClient, path: str) -> list[Json]:
    """The column definitions of a list."""
    body = (await http.get(path, TABLE)).body
    assert (body["kind"], body["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    found: list[Json] = body["columnDefinitions"]
    return found


@pytest.mark.parametrize(
    ("path", "names", "wide"),
    [
        (
            PODS,
            "Name Ready Status Restarts Age",
            ["IP", "Node", "Nominated Node", "Readiness Gates"],
        ),
        (
            NODES,
            "Name Status Roles Age Version",
            ["Internal-IP", "External-IP", "OS-Image", "Kernel-Version", "Container-Runtime"],
        ),
        ("/api/v1/namespaces", "Name Status Age", []),
        ("/api/v1/configmaps", "Name Data Age", []),
        ("/api/v1/services", "Name Type Cluster-IP External-IP Port(s) Age", ["Selector"]),
        (
            "/apis/apps/v1/deployments",
            "Name Ready Up-to-date Available Age",
            ["Containers", "Images", "Selector"],
        ),
        ("/apis/apps/v1/statefulsets", "Name Ready Age", ["Containers", "Images"]),
        (
            "/apis/batch/v1/jobs",
            "Name Status Completions Duration Age",
            ["Containers", "Images", "Selector"],
        ),
        ("/apis/coordination.k8s.io/v1/leases", "Name Holder Age", []),
        ("/apis/rbac.authorization.k8s.io/v1/clusterroles", "Name|Created At", []),
        (
            "/apis/policy/v1/poddisruptionbudgets",
            "Name|Min Available|Max Unavailable|Allowed Disruptions|Age",
            [],
        ),
        (
            "/apis/scheduling.k8s.io/v1/priorityclasses",
            "Name Value Global-Default Age PreemptionPolicy",
            [],
        ),
        (
            "/apis/storage.k8s.io/v1/storageclasses",
            "Name Provisioner ReclaimPolicy VolumeBindingMode AllowVolumeExpansion Age",
            [],
        ),
        ("/apis/storage.k8s.io/v1/volumeattachments", "Name Attacher PV Node Attached Age", []),
        ("/apis/discovery.k8s.io/v1/endpointslices", "Name AddressType Ports Endpoints Age", []),
    ],
)
async def test_each_kind_has_its_columns(
    http: ApiClient, path: str, names: str, wide: list[str]
) -> None:
    found = await columns(http, path)
    narrow = [column["name"] for column in found if not column["priority"]]
    assert narrow == names.split("|" if "|" in names else " ")
    assert [column["name"] for column in found if column["priority"] == 1] == wide


async def test_columns_have_types_formats_and_descriptions(http: ApiClient) -> None:
    found = {column["name"]: column for column in await columns(http, PODS)}
    assert (found["Name"]["type"], found["Name"]["format"]) == ("string", "name")
    assert found["Ready"] == {
        "name": "Ready",
        "type": "string",
        "format": "",
        "description": "The aggregate readiness state of this pod for accepting traffic.",
        "priority": 0,
    }
    assert found["Age"]["description"].startswith("CreationTimestamp is a timestamp")
    classes = await columns(http, "/apis/scheduling.k8s.io/v1/priorityclasses")
    assert [column["type"] for column in classes] == [
        "string", "integer", "boolean", "string", "string",
    ]  # fmt: skip


async def test_cells_have_the_texts_that_kubectl_shows(http: ApiClient) -> None:
    await http.create(NODES, node("table"))
    labels = {"node-role.kubernetes.io/worker": ""}
    change = {"metadata": {"labels": labels}, "spec": {"unschedulable": True}}
    await http.patch(f"{NODES}/table", change, MERGE)
    (row,) = (await http.get(f"{NODES}/table", TABLE)).body["rows"]
    assert row["cells"][:3] == ["table", "Ready,SchedulingDisabled", "worker"]
    await http.create(PODS, pod("table"))
    (row,) = (await http.get(f"{PODS}/table", TABLE)).body["rows"]
    assert row["cells"][:4] == ["table", "0/1", "Pending", "0"]
    assert row["cells"][5:] == ["<none>", "<none>", "<none>", "<none>"]
    assert row["object"]["kind"] == "PartialObjectMetadata"


async def finished(http: ApiClient, name: str, status: Json) -> Json:
    """The row of a pod with a status."""
    await http.create(PODS, pod(name))
    reply = await http.patch(f"{PODS}/{name}/status", {"status": status}, MERGE)
    assert reply.status == 200, reply.text
    (row,) = (await http.get(f"{PODS}/{name}", TABLE)).body["rows"]
    found: Json = row
    return found


async def test_a_finished_pod_has_a_condition_in_its_row(http: ApiClient) -> None:
    ended = {"exitCode": 0, "reason": "Completed"}
    container = {"name": "c", "ready": False, "restartCount": 0, "image": "x", "imageID": ""}
    status = {
        "phase": "Succeeded",
        "containerStatuses": [{**container, "state": {"terminated": ended}}],
    }
    row = await finished(http, "done", status)
    assert row["cells"][1:4] == ["0/1", "Completed", "0"]
    (condition,) = row["conditions"]
    assert (condition["type"], condition["status"]) == ("Completed", "True")
    assert (condition["reason"], condition["message"]) == (
        "Succeeded",
        "The pod has completed successfully.",
    )


async def test_the_row_of_a_pod_shows_waiting_reasons_and_the_age_of_restarts(
    http: ApiClient,
) -> None:
    last = {"exitCode": 1, "finishedAt": "2020-01-01T00:00:00Z"}
    container = {
        "name": "c",
        "ready": False,
        "restartCount": 3,
        "image": "x",
        "imageID": "",
        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": last},
    }
    row = await finished(http, "crashing", {"phase": "Running", "containerStatuses": [container]})
    assert row["cells"][2] == "CrashLoopBackOff"
    assert row["cells"][3].startswith("3 (")
    assert row["cells"][3].endswith(" ago)")


@pytest.mark.parametrize(
    ("included", "kind"),
    [("None", None), ("Metadata", "PartialObjectMetadata"), ("Object", "ConfigMap")],
)
async def test_rows_include_the_requested_part_of_the_object(
    http: ApiClient, included: str, kind: str | None
) -> None:
    name = f"carried-{included.lower()}"
    await http.create(CONFIG_MAPS, {"metadata": {"name": name}})
    path = f"{CONFIG_MAPS}?includeObject={included}&fieldSelector=metadata.name={name}"
    (row,) = (await http.get(path, TABLE)).body["rows"]
    carried = row.get("object")
    assert (carried and carried["kind"]) == kind


async def test_an_unknown_include_object_value_is_refused(http: ApiClient) -> None:
    reply = await http.get(f"{CONFIG_MAPS}?includeObject=Everything", TABLE)
    assert reply.status == 400


async def test_only_the_first_table_of_a_watch_has_columns(http: ApiClient) -> None:
    query = f"resourceVersion={await http.revision()}"
    async with http.watch(CONFIG_MAPS, query, TABLE) as watch:
        for name in ("first", "second"):
            await http.create(CONFIG_MAPS, {"metadata": {"name": name}})
        events = await watch.take(2)
    assert [event["object"]["kind"] for event in events] == ["Table", "Table"]
    assert events[0]["object"]["columnDefinitions"]
    assert not events[1]["object"].get("columnDefinitions")
    assert events[1]["object"]["rows"][0]["cells"][0] == "second"


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
async def test_tables_have_the_requested_version(http: ApiClient, version: str) -> None:
    for kind, given in (("Table", "Table"), ("PartialObjectMetadataList",) * 2):
        accept = f"application/json;as={kind};v={version};g=meta.k8s.io"
        reply = await http.request("GET", "/api/v1/namespaces", accept=accept)
        assert (reply.body["kind"], reply.body["apiVersion"]) == (given, f"meta.k8s.io/{version}")
    unknown = "application/json;as=Table;v=v2;g=meta.k8s.io"
    assert (await http.request("GET", "/api/v1/namespaces", accept=unknown)).status == 406


async def test_partial_metadata_of_an_object_and_of_a_list_differ(http: ApiClient) -> None:
    form = "application/json;as=PartialObjectMetadata{};v=v1;g=meta.k8s.io"
    for path, suffix, problem in (
        ("/api/v1/namespaces", "", "is a list (*core.NamespaceList)"),
        ("/api/v1/namespaces/default", "List", "is not a list (*core.Namespace)"),
    ):
        reply = await http.request("GET", path, accept=form.format(suffix))
        kind = f"PartialObjectMetadata{suffix}"
        assert (reply.status, reply.body["reason"]) == (406, "NotAcceptable")
        assert reply.body["message"] == f"you requested {kind}, but the requested object {problem}"


@pytest.mark.parametrize("kind", ["PartialObjectMetadata", "Table"])
async def test_bookmarks_have_the_format_of_the_watch(http: ApiClient, kind: str) -> None:
    accept = f"application/json;as={kind};v=v1;g=meta.k8s.io"
    query = "allowWatchBookmarks=1&timeoutSeconds=2&fieldSelector=metadata.name=nobody"
    async with http.watch(CONFIG_MAPS, query, accept) as watch:
        mark = await watch.next()
    assert (mark["type"], mark["object"]["kind"]) == ("BOOKMARK", kind)
    assert int(mark["object"]["metadata"]["resourceVersion"]) > 0


async def test_partial_metadata_in_a_get_a_list_and_a_watch(http: ApiClient) -> None:
    await http.create(CONFIG_MAPS, {"metadata": {"name": "lean"}, "data": {"a": "b"}})
    one = (await http.get(f"{CONFIG_MAPS}/lean", METADATA)).body
    assert (one["kind"], one["apiVersion"]) == ("PartialObjectMetadata", "meta.k8s.io/v1")
    assert set(one) == {"kind", "apiVersion", "metadata"}
    path = f"{CONFIG_MAPS}?fieldSelector=metadata.name=lean"
    many = (await http.get(path, METADATA_LIST)).body
    assert many["kind"] == "PartialObjectMetadataList"
    assert many["items"] == [one]
    async with http.watch(CONFIG_MAPS, "fieldSelector=metadata.name=lean", METADATA) as watch:
        assert (await watch.next())["object"] == one


async def test_a_row_without_an_object_has_null(http: ApiClient) -> None:
    await http.create(CONFIG_MAPS, config_map("rowless"))
    (row,) = (await http.get(f"{CONFIG_MAPS}/rowless?includeObject=None", TABLE)).body["rows"]
    assert row["object"] is None


async def test_an_unknown_part_of_the_object_is_refused(http: ApiClient) -> None:
    reply = await http.get(f"{CONFIG_MAPS}?includeObject=Half", TABLE)
    assert (reply.status, reply.body["message"]) == (
        400,
        (
            'Unable to convert to Table as requested: includeObject: Invalid value: "Half": must '
            "be "
            "'Metadata', 'Object', 'None', or empty"
        ),
    )


async def test_the_items_of_an_empty_list_of_metadata_are_null(http: ApiClient) -> None:
    path = f"{CONFIG_MAPS}?labelSelector=nobody%3Dhas"
    assert (await http.get(path, METADATA_LIST)).body["items"] is None


async def test_a_scale_is_shown_as_a_table_too(api: ApiClient) -> None:
    await api.create(DEPLOYMENTS, deployment(replicas=3))
    reply = await api.get(f"{DEPLOYMENTS}/w/scale", TABLE)
    [row] = reply.body["rows"]
    names = [column["name"] for column in reply.body["columnDefinitions"]]
    assert names == ["Name", "Desired", "Available", "Age"]
    assert row["cells"][:3] == ["w", 3, 0]
    metadata = await api.get(
        f"{DEPLOYMENTS}/w/scale", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
    )
    assert metadata.body == row["object"]
