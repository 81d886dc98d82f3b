"""Workloads and PodGroups: defaults, validation, admission, statuses, discovery and gates."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

import pytest

from simcluster.features import read_features
from simcluster.tests.contract.causes import INVALID, REQUIRED, causes
from simcluster.tests.contract.conftest import OPTIONS, running
from simcluster.tests.contract.requests import CLASSES, PODS
from simcluster.tests.support.api_client import MERGE, ApiClient, expect_gone, pod
from simcluster.tests.support.api_servers import ApiServerUnderTest

Json = dict[str, Any]

GROUP = "/apis/scheduling.k8s.io/v1alpha2"
GROUPS = f"{GROUP}/namespaces/default/podgroups"
WORKLOADS = f"{GROUP}/namespaces/default/workloads"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
VERSION = ["scheduling.k8s.io/v1alpha2=true"]
GENERIC = "GenericWorkload=true"
ALL = (
    f"{GENERIC},GangScheduling=true,TopologyAwareWorkloadScheduling=true,"
    "WorkloadAwarePreemption=true,DRAWorkloadResourceClaims=true"
)
FINALIZER = "scheduling.k8s.io/podgroup-protection"
CLAIM_SOURCES = "`resourceClaimName`, `resourceClaimTemplateName`"
GANG: Json = {"gang": {"minCount": 2}}
TOPOLOGY: Json = {"topology": [{"key": "rack"}]}
ALPHA_FIELDS: Json = {
    "schedulingConstraints": TOPOLOGY,
    "disruptionMode": "PodGroup",
    "resourceClaims": [{"name": "gpu", "resourceClaimName": "shared"}],
}


def group(name: str = "g", **spec: Any) -> Json:
    return {"metadata": {"name": name}, "spec": {"schedulingPolicy": GANG, **spec}}


def workload(**spec: Any) -> Json:
    templates = [{"name": "workers", "schedulingPolicy": GANG}]
    return {"metadata": {"name": "w"}, "spec": {"podGroupTemplates": templates, **spec}}


def member(name: str = "a", group_name: str = "g") -> Json:
    return pod(name, schedulingGroup={"podGroupName": group_name})


def from_template(workload_name: str = "w", template: str = "workers") -> Json:
    named = {"workloadName": workload_name, "podGroupTemplateName": template}
    return {"podGroupTemplateRef": {"workload": named}}


def _serving(
    gates: str, tmp_path_factory: pytest.TempPathFactory, *, controllers: bool = False
) -> Any:
    options = replace(OPTIONS, gates=read_features([gates], VERSION), with_controllers=controllers)
    return running(options, tmp_path_factory.mktemp("server"))


@pytest.fixture(scope="module")
def full_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServerUnderTest]:
    """A server with all gates of pod groups, and with controllers."""
    with _serving(ALL, tmp_path_factory, controllers=True) as server:
        yield server


@pytest.fixture(scope="module")
def plain_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServerUnderTest]:
    """A server with GenericWorkload only, without controllers."""
    with _serving(GENERIC, tmp_path_factory) as server:
        yield server


@pytest.fixture
async def api(full_server: ApiServerUnderTest) -> AsyncIterator[ApiClient]:
    async with ApiClient(full_server.url, full_server.token) as client:
        yield client
        for path in (PODS, GROUPS, WORKLOADS, CLASSES):
            for item in (await client.get(path)).body["items"]:
                name = item["metadata"]["name"]
                if not name.startswith("system-"):
                    await client.delete(f"{path}/{name}?gracePeriodSeconds=0")


@pytest.fixture
async def plain(plain_server: ApiServerUnderTest) -> AsyncIterator[ApiClient]:
    async with ApiClient(plain_server.url, plain_server.token) as client:
        yield client


async def test_a_server_without_the_gate_serves_no_kind_and_drops_the_pods_field(
    http: ApiClient,
) -> None:
    assert (await http.get(GROUP)).status == 404
    assert (await http.get(f"{GROUP}/podgroups")).status == 404
    created = await http.post(f"{PODS}?fieldValidation=Strict", member("without-gate"))
    assert created.status == 201
    assert "schedulingGroup" not in created.body["spec"]
    assert "Warning" not in created.headers
    await http.delete(f"{PODS}/without-gate?gracePeriodSeconds=0")


async def test_discovery_lists_the_kinds(api: ApiClient) -> None:
    listed = (await api.get(GROUP)).body["resources"]
    assert [each["name"] for each in listed] == ["podgroups", "podgroups/status", "workloads"]
    assert listed[0]["singularName"] == "podgroup"
    versions = (await api.get("/apis/scheduling.k8s.io")).body
    assert [each["version"] for each in versions["versions"]] == ["v1", "v1alpha2"]
    assert versions["preferredVersion"]["version"] == "v1"
    document = (await api.get("/openapi/v3/apis/scheduling.k8s.io/v1alpha2")).body
    schemas = document["components"]["schemas"]
    spec = schemas["io.k8s.api.scheduling.v1alpha2.PodGroupSpec"]
    assert spec["required"] == ["schedulingPolicy"]
    conditions = schemas["io.k8s.api.scheduling.v1alpha2.PodGroupStatus"]["properties"]
    assert conditions["conditions"]["x-kubernetes-patch-merge-key"] == "type"


async def test_a_group_gets_its_defaults_and_its_finalizer(api: ApiClient) -> None:
    created = await api.create(GROUPS, {**group(), "status": {"conditions": []}})
    assert created["metadata"]["finalizers"] == [FINALIZER]
    assert "generation" not in created["metadata"]
    assert created["spec"] == {"schedulingPolicy": GANG, "disruptionMode": "Pod", "priority": 0}
    assert created["status"] == {}


async def test_a_group_takes_the_value_of_its_priority_class(api: ApiClient) -> None:
    await api.create(CLASSES, {"metadata": {"name": "high"}, "value": 100})
    created = await api.create(GROUPS, group(priorityClassName="high"))
    assert created["spec"]["priority"] == 100
    unknown = await api.post(GROUPS, group("h", priorityClassName="unknown"))
    assert unknown.status == 403
    assert unknown.body["message"] == (
        'podgroups.scheduling.k8s.io "h" is forbidden: no PriorityClass with name unknown was found'
    )
    contradicting = await api.post(GROUPS, group("h", priorityClassName="high", priority=1))
    assert contradicting.status == 403
    assert "computed 100 from the given PriorityClass name" in contradicting.body["message"]


async def test_a_group_names_a_template_that_exists(api: ApiClient) -> None:
    missing = await api.post(GROUPS, group(**from_template()))
    assert missing.status == 403
    assert missing.body["message"].endswith('PodGroup rejected: Workload "w" not found')
    await api.create(WORKLOADS, workload())
    other = await api.post(GROUPS, group(**from_template(template="other")))
    assert other.body["message"].endswith(
        'PodGroup rejected: PodGroupTemplate "other" not found in Workload "w"'
    )
    await api.create(GROUPS, group(**from_template()))


@pytest.mark.parametrize(
    ("spec", "reason", "field", "message"),
    [
        (
            {"schedulingPolicy": {}},
            INVALID,
            "schedulingPolicy",
            'Invalid value: "": must specify one of: `basic`, `gang`',
        ),
        (
            {"schedulingPolicy": {"basic": {}, **GANG}},
            INVALID,
            "schedulingPolicy",
            'Invalid value: "{`basic`, `gang`}": must specify exactly one of: `basic`, `gang`',
        ),
        (
            {"schedulingPolicy": {"gang": {}}},
            REQUIRED,
            "schedulingPolicy.gang.minCount",
            "Required value",
        ),
        (
            {"schedulingPolicy": {"gang": {"minCount": -1}}},
            INVALID,
            "schedulingPolicy.gang.minCount",
            "Invalid value: -1: must be greater than or equal to 1",
        ),
        (
            {"schedulingConstraints": {"topology": [{"key": "a"}, {"key": "b"}]}},
            "FieldValueTooMany",
            "schedulingConstraints.topology",
            "Too many: 2: must have at most 1 item",
        ),
        (
            {"disruptionMode": "Node"},
            "FieldValueNotSupported",
            "disruptionMode",
            'Unsupported value: "Node": supported values: "Pod", "PodGroup"',
        ),
        (
            {"resourceClaims": [{"name": "gpu"}]},
            INVALID,
            "resourceClaims[0]",
            f'Invalid value: "": must specify one of: {CLAIM_SOURCES}',
        ),
    ],
)
async def test_an_invalid_group_is_refused(
    api: ApiClient, spec: Json, reason: str, field: str, message: str
) -> None:
    assert causes(await api.post(GROUPS, group(**spec))) == [(reason, f"spec.{field}", message)]


async def test_workloads_are_validated_and_do_not_change(api: ApiClient) -> None:
    none = await api.post(WORKLOADS, workload(podGroupTemplates=[]))
    assert causes(none) == [(REQUIRED, "spec.podGroupTemplates", "Required value")]
    twice = [{"name": "a", "schedulingPolicy": GANG}] * 2
    duplicate = await api.post(WORKLOADS, workload(podGroupTemplates=twice))
    assert [cause[0] for cause in causes(duplicate)] == ["FieldValueDuplicate"]
    created = await api.create(WORKLOADS, workload())
    assert created["spec"]["podGroupTemplates"][0]["disruptionMode"] == "Pod"
    other = {"spec": {"podGroupTemplates": twice[:1]}}
    changed = await api.patch(f"{WORKLOADS}/w", other, MERGE)
    assert [cause[1] for cause in causes(changed)] == ["spec.podGroupTemplates"]
    owner = {"spec": {"controllerRef": {"apiGroup": "batch", "kind": "Job", "name": "j"}}}
    assert (await api.patch(f"{WORKLOADS}/w", owner, MERGE)).status == 200
    owner["spec"]["controllerRef"]["name"] = "k"
    renamed = await api.patch(f"{WORKLOADS}/w", owner, MERGE)
    assert [cause[1] for cause in causes(renamed)] == ["spec.controllerRef"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("schedulingPolicy", {"gang": {"minCount": 3}}),
        ("schedulingConstraints", TOPOLOGY),
        ("disruptionMode", "PodGroup"),
        ("priority", 5),
        ("resourceClaims", ALPHA_FIELDS["resourceClaims"]),
    ],
)
async def test_the_spec_of_a_group_is_immutable(api: ApiClient, field: str, value: Any) -> None:
    await api.create(GROUPS, group())
    ((reason, path, message),) = causes(
        await api.patch(f"{GROUPS}/g", {"spec": {field: value}}, MERGE)
    )
    assert (reason, path) == (INVALID, f"spec.{field}")
    assert message.endswith("field is immutable")


async def test_the_status_is_a_subresource_with_conditions_by_type(api: ApiClient) -> None:
    await api.create(GROUPS, group())
    condition = {
        "type": "PodGroupScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "pod group is unschedulable",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    body = {"metadata": {"labels": {"a": "b"}}, "status": {"conditions": [condition]}}
    patched = await api.patch(f"{GROUPS}/g/status", body)
    assert patched.status == 200
    assert patched.body["status"]["conditions"] == [condition]
    assert "labels" not in patched.body["metadata"]
    other = {"status": {"conditions": [{**condition, "type": "DisruptionTarget"}]}}
    again = await api.patch(f"{GROUPS}/g/status", other)
    assert {each["type"] for each in again.body["status"]["conditions"]} == {
        "PodGroupScheduled",
        "DisruptionTarget",
    }
    kept = await api.patch(f"{GROUPS}/g", {"status": {"conditions": []}}, MERGE)
    assert len(kept.body["status"]["conditions"]) == 2


async def test_a_group_stays_until_its_last_unfinished_pod_is_gone(api: ApiClient) -> None:
    await api.create(GROUPS, group())
    for name in ("a", "b"):
        await api.create(PODS, member(name))
    deleted = await api.delete(f"{GROUPS}/g")
    assert deleted.body["metadata"]["deletionTimestamp"]
    await api.delete(f"{PODS}/a?gracePeriodSeconds=0")
    assert (await api.get(f"{GROUPS}/g")).status == 200
    async with expect_gone(api, GROUPS, "g"):
        done = {"status": {"phase": "Succeeded"}}
        assert (await api.patch(f"{PODS}/b/status", done, MERGE)).status == 200


async def test_a_group_without_pods_is_deleted_at_once(api: ApiClient) -> None:
    await api.create(GROUPS, group())
    async with expect_gone(api, GROUPS, "g"):
        await api.delete(f"{GROUPS}/g")


async def test_the_group_of_a_pod_is_required_and_immutable(api: ApiClient) -> None:
    empty = await api.post(PODS, pod(schedulingGroup={}))
    assert causes(empty) == [(REQUIRED, "spec.schedulingGroup.podGroupName", "Required value")]
    created = await api.create(PODS, member())
    assert created["spec"]["schedulingGroup"] == {"podGroupName": "g"}
    moved = {"spec": {"schedulingGroup": {"podGroupName": "other"}}}
    assert causes(await api.patch(f"{PODS}/a", moved, MERGE))[0][1] == "spec"


async def test_kubectl_shows_names_and_times_of_groups(api: ApiClient) -> None:
    await api.create(GROUPS, group())
    table = (await api.get(GROUPS, TABLE)).body
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Created At"]


async def test_fields_of_gates_that_are_off_are_dropped(plain: ApiClient) -> None:
    created = await plain.create(GROUPS, group(**ALPHA_FIELDS, priorityClassName="unknown"))
    assert created["spec"] == {"schedulingPolicy": GANG}
    templates = [{"name": "workers", "schedulingPolicy": GANG, **ALPHA_FIELDS}]
    stored = await plain.create(WORKLOADS, workload(podGroupTemplates=templates))
    assert stored["spec"]["podGroupTemplates"] == [{"name": "workers", "schedulingPolicy": GANG}]
    changed = await plain.patch(f"{GROUPS}/g", {"spec": ALPHA_FIELDS}, MERGE)
    assert changed.body["spec"] == {"schedulingPolicy": GANG}
