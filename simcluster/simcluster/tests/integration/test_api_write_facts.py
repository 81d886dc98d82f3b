"""Behaviour of an API server: creations, changes, bindings and evictions."""

import asyncio
from typing import Any

import pytest

from simcluster.tests.support.api_client import (
    BUDGETS,
    CONFIG_MAPS,
    JSON_PATCH,
    LEASES,
    MERGE,
    NODES,
    PODS,
    ApiClient,
    binding,
    config_map,
    eviction,
    node,
    pod,
)
from simcluster.tests.support.api_servers import ApiServerUnderTest
from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S

Json = dict[str, Any]

CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
EVENTS = "/api/v1/namespaces/default/events"
EVENTS_V1 = "/apis/events.k8s.io/v1/namespaces/default/events"
CONFLICT = 'Operation cannot be fulfilled on pods/binding "a": '


async def test_the_first_binding_is_answered_201_and_others_409(api: ApiClient) -> None:
    await api.create(PODS, pod())
    first = await api.bind("a", "n")
    expected = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    assert (first.status, first.body) == (201, {**expected, "code": 201})
    second = await api.bind("a", "n")
    assert second.status == 409
    assert second.body["message"] == CONFLICT + 'pod a is already assigned to node "n"'
    assert second.body["details"]["kind"] == "pods/binding"


async def test_binding_marks_the_pod_scheduled_and_copies_the_nodes_topology(
    api: ApiClient,
) -> None:
    await api.create(NODES, node("n", zone="z7"))
    await api.create(PODS, pod())
    unschedulable = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/0",
    }
    other = {"type": "example.com/Other", "status": "True"}
    status = {"conditions": [unschedulable, other], "nominatedNodeName": "m"}
    await api.patch(f"{PODS}/a/status", {"status": status})
    await api.post(f"{PODS}/a/binding", binding("a", "n", annotations={"x": "y"}))
    bound = (await api.get(f"{PODS}/a")).body
    conditions = {found["type"]: found for found in bound["status"]["conditions"]}
    assert conditions["PodScheduled"]["status"] == "True"
    assert not {"reason", "message"} & set(conditions["PodScheduled"])
    assert conditions["example.com/Other"]["status"] == "True"
    assert "nominatedNodeName" not in bound["status"]
    assert bound["metadata"]["annotations"] == {"x": "y"}
    assert bound["metadata"]["labels"]["topology.kubernetes.io/zone"] == "z7"
    assert bound["metadata"]["labels"]["topology.kubernetes.io/region"] == "r"


async def test_a_pod_can_be_bound_to_a_missing_node(api: ApiClient) -> None:
    await api.create(PODS, pod())
    body = binding("a", "nowhere")
    body["target"] = {"name": "nowhere"}
    reply = await api.post("/api/v1/namespaces/default/bindings", body)
    assert reply.status == 201
    assert (await api.get(f"{PODS}/a")).body["spec"]["nodeName"] == "nowhere"


async def test_binding_a_gated_or_terminating_pod_is_a_conflict(api: ApiClient) -> None:
    await api.create(PODS, pod(schedulingGates=[{"name": "example.com/gate"}]))
    gated = await api.bind("a", "n")
    assert gated.status == 409
    assert gated.body["message"] == CONFLICT + "pod a has non-empty .spec.schedulingGates"
    held = pod("b")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    await api.create(PODS, held)
    await api.delete(f"{PODS}/b")
    terminating = await api.bind("b", "n")
    assert terminating.status == 409
    assert "pod b is being deleted, cannot be assigned to a host" in terminating.body["message"]
    await api.patch(f"{PODS}/b", {"metadata": {"finalizers": None}}, MERGE)


async def test_a_binding_with_an_unusable_target_is_an_internal_error(api: ApiClient) -> None:
    await api.create(PODS, pod())
    nameless, service = binding("a", ""), binding("a", "n")
    service["target"]["kind"] = "Service"
    replies = [await api.post(f"{PODS}/a/binding", body) for body in (nameless, service)]
    assert [reply.status for reply in replies] == [500, 500]
    assert (await api.bind("missing", "n")).status == 404


async def test_a_binding_for_another_uid_is_a_conflict(api: ApiClient) -> None:
    await api.create(PODS, pod())
    reply = await api.post(f"{PODS}/a/binding", binding("a", "n", uid="0-0"))
    assert reply.status == 409


async def _create_with_class(api: ApiClient, name: str) -> Json:
    """Create a pod, as soon as the API server's admission knows the priority class."""
    async with asyncio.timeout(WAIT_TIMEOUT_S):
        while True:
            reply = await api.post(PODS, pod(priorityClassName=name))
            if reply.status == 201:
                return reply.body
            assert reply.status == 403, reply.text
            await asyncio.sleep(0.05)


async def test_the_priority_of_a_pod_is_set_from_its_class(api: ApiClient) -> None:
    high = {"metadata": {"name": "high"}, "value": 1000, "preemptionPolicy": "Never"}
    await api.create(CLASSES, high)
    created = await _create_with_class(api, "high")
    assert (created["spec"]["priority"], created["spec"]["preemptionPolicy"]) == (1000, "Never")
    unknown = await api.post(PODS, pod("b", priorityClassName="nosuch"))
    assert (unknown.status, unknown.body["reason"]) == (403, "Forbidden")
    differing = await api.post(PODS, pod("c", priorityClassName="high", priority=7))
    assert (differing.status, differing.body["reason"]) == (403, "Forbidden")


async def test_a_created_pods_status_is_reset(api: ApiClient) -> None:
    posted = pod()
    posted["status"] = {"phase": "Running", "podIP": "1.2.3.4"}
    created = await api.create(PODS, posted)
    assert created["status"] == {"phase": "Pending", "qosClass": "BestEffort"}


async def test_a_gated_pod_is_created_with_a_scheduling_gated_condition(api: ApiClient) -> None:
    created = await api.create(PODS, pod(schedulingGates=[{"name": "example.com/gate"}]))
    condition = created["status"]["conditions"][0]
    assert (condition["type"], condition["status"]) == ("PodScheduled", "False")
    assert condition["reason"] == "SchedulingGated"


async def test_a_created_node_keeps_its_status_and_allocatable_defaults_to_capacity(
    api: ApiClient,
) -> None:
    created = await api.create(NODES, node())
    assert created["status"]["allocatable"] == {"cpu": "4", "memory": "8Gi", "pods": "110"}
    assert created["status"]["conditions"][0]["type"] == "Ready"


async def test_every_pod_tolerates_an_unready_or_unreachable_node_for_five_minutes(
    api: ApiClient,
) -> None:
    own = {"key": "x", "operator": "Exists"}
    created = await api.create(PODS, pod(tolerations=[own]))
    tolerations = created["spec"]["tolerations"]
    assert tolerations[0] == own
    assert [found["key"] for found in tolerations[1:]] == [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ]
    assert {found["tolerationSeconds"] for found in tolerations[1:]} == {300}
    assert created["metadata"]["generation"] == 1
    everything = await api.create(PODS, pod("b", tolerations=[{"operator": "Exists"}]))
    assert len(everything["spec"]["tolerations"]) == 1


async def test_quantities_are_canonicalized(api: ApiClient) -> None:
    limits = {"cpu": "0.5", "memory": "1.5Gi"}
    container = {"name": "c", "image": "x:1", "resources": {"limits": limits}}
    created = await api.create(PODS, pod(containers=[container]))
    resources = created["spec"]["containers"][0]["resources"]
    canonical = {"cpu": "500m", "memory": "1536Mi"}
    assert resources == {"limits": canonical, "requests": canonical}
    assert created["status"]["qosClass"] == "Guaranteed"


async def test_strategic_merge_merges_conditions_by_type(api: ApiClient) -> None:
    await api.create(PODS, pod())
    for name in ("One", "Two"):
        condition = {"type": f"example.com/{name}", "status": "True"}
        await api.patch(f"{PODS}/a/status", {"status": {"conditions": [condition]}})
    ordered = {
        "$setElementOrder/conditions": [{"type": "example.com/Two"}, {"type": "example.com/One"}],
        "conditions": [{"type": "example.com/One", "status": "False"}],
    }
    patched = (await api.patch(f"{PODS}/a/status", {"status": ordered})).body
    assert [(c["type"], c["status"]) for c in patched["status"]["conditions"]] == [
        ("example.com/Two", "True"),
        ("example.com/One", "False"),
    ]
    removal = [{"$patch": "delete", "type": "example.com/Two"}]
    removed = (await api.patch(f"{PODS}/a/status", {"status": {"conditions": removal}})).body
    assert [c["type"] for c in removed["status"]["conditions"]] == ["example.com/One"]


async def test_strategic_merge_replaces_taints_and_unites_finalizers(api: ApiClient) -> None:
    await api.create(NODES, node())
    for key in ("x", "y"):
        taint = {"key": key, "effect": "NoSchedule"}
        change = {
            "spec": {"taints": [taint]},
            "metadata": {"finalizers": [f"example.com/{key}"]},
        }
        changed = (await api.patch(f"{NODES}/n", change)).body
    assert [taint["key"] for taint in changed["spec"]["taints"]] == ["y"]
    assert changed["metadata"]["finalizers"] == ["example.com/x", "example.com/y"]
    await api.patch(f"{NODES}/n", {"metadata": {"finalizers": None}}, MERGE)


async def test_a_patch_of_plain_json_is_an_unsupported_media_type(api: ApiClient) -> None:
    await api.create(PODS, pod())
    assert (await api.patch(f"{PODS}/a", {}, "application/json")).status == 415


async def test_a_status_patch_with_another_uid_is_invalid(api: ApiClient) -> None:
    await api.create(PODS, pod())
    reply = await api.patch(f"{PODS}/a/status", {"metadata": {"uid": "0-0"}})
    assert (reply.status, reply.body["reason"]) == (422, "Invalid")


async def test_a_status_patch_changes_labels_but_never_the_spec(api: ApiClient) -> None:
    await api.create(PODS, pod())
    change = {"metadata": {"labels": {"x": "y"}}, "spec": {"nodeName": "n"}}
    changed = (await api.patch(f"{PODS}/a/status", change)).body
    assert changed["metadata"]["labels"]["x"] == "y"
    assert "nodeName" not in changed["spec"]


async def test_json_patches_must_be_lists_and_failed_tests_are_invalid(api: ApiClient) -> None:
    await api.create(CONFIG_MAPS, config_map())
    path = f"{CONFIG_MAPS}/a"
    good = [
        {"op": "test", "path": "/data/a", "value": "b"},
        {"op": "add", "path": "/data/c", "value": "d"},
        {"op": "remove", "path": "/data/a"},
    ]
    assert (await api.patch(path, good, JSON_PATCH)).body["data"] == {"c": "d"}
    failed = await api.patch(path, [{"op": "test", "path": "/data/c", "value": "x"}], JSON_PATCH)
    assert failed.status == 422
    assert (await api.patch(path, {"data": {}}, JSON_PATCH)).status == 400


async def test_put_without_a_revision_overwrites_config_maps_but_not_leases(api: ApiClient) -> None:
    await api.create(CONFIG_MAPS, config_map())
    replaced = await api.put(f"{CONFIG_MAPS}/a", config_map("a", x="y"))
    assert (replaced.status, replaced.body["data"]) == (200, {"x": "y"})
    lease = {"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}}
    assert (await api.put(f"{LEASES}/l", lease)).status == 201
    assert (await api.put(f"{LEASES}/l", lease)).status == 422
    assert (await api.put(f"{PODS}/missing", pod("missing"))).status == 404


async def test_put_with_an_old_revision_is_a_conflict(api: ApiClient) -> None:
    created = await api.create(CONFIG_MAPS, config_map())
    await api.patch(f"{CONFIG_MAPS}/a", {"data": {"c": "d"}}, MERGE)
    reply = await api.put(f"{CONFIG_MAPS}/a", created)
    assert (reply.status, reply.body["reason"]) == (409, "Conflict")
    assert reply.body["message"] == (
        'Operation cannot be fulfilled on configmaps "a": the object has been modified; please '
        "apply your changes to the latest version and try again"
    )


async def test_a_created_object_must_not_have_a_resource_version(api: ApiClient) -> None:
    posted = config_map()
    posted["metadata"]["resourceVersion"] = "5"
    assert (await api.post(CONFIG_MAPS, posted)).status == 500


async def test_the_spec_of_a_pod_cannot_be_changed(api: ApiClient) -> None:
    await api.create(PODS, pod())
    reply = await api.patch(f"{PODS}/a", {"spec": {"schedulerName": "other"}})
    assert (reply.status, reply.body["reason"]) == (422, "Invalid")
    gated = pod("g", schedulingGates=[{"name": "example.com/gate"}])
    await api.create(PODS, gated)
    opened = await api.patch(f"{PODS}/g", {"spec": {"schedulingGates": None}}, MERGE)
    assert (opened.status, "schedulingGates" in opened.body["spec"]) == (200, False)
    assert opened.body["metadata"]["generation"] == 2


async def _budget(api: ApiClient, name: str, allowed: int, observed: int = 1) -> None:
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}
    await api.create(BUDGETS, {"metadata": {"name": name}, "spec": spec})
    status = {
        "disruptionsAllowed": allowed,
        "observedGeneration": observed,
        "currentHealthy": 1,
        "desiredHealthy": 1,
        "expectedPods": 1,
    }
    await api.patch(f"{BUDGETS}/{name}/status", {"status": status}, MERGE)


async def _run(api: ApiClient) -> None:
    await api.create(PODS, pod())
    await api.bind("a", "n")
    ready = {"type": "Ready", "status": "True"}
    await api.patch(f"{PODS}/a/status", {"status": {"phase": "Running", "conditions": [ready]}})


async def test_eviction_ignores_the_budget_of_a_pending_pod(api: ApiClient) -> None:
    held = pod()
    held["metadata"]["finalizers"] = ["example.com/hold"]
    await api.create(PODS, held)
    await _budget(api, "b", allowed=0)
    reply = await api.post(f"{PODS}/a/eviction", eviction("a"))
    assert (reply.status, reply.body["status"]) == (201, "Success")
    evicted = (await api.get(f"{PODS}/a")).body
    assert evicted["status"]["conditions"][-1]["type"] == "DisruptionTarget"
    await api.patch(f"{PODS}/a", {"metadata": {"finalizers": None}}, MERGE)


async def test_a_refused_eviction_is_429_with_its_cause(api: ApiClient) -> None:
    await _run(api)
    await _budget(api, "b", allowed=0)
    reply = await api.post(f"{PODS}/a/eviction", eviction("a"))
    assert reply.status == 429
    assert reply.body["details"]["causes"][0]["reason"] == "DisruptionBudget"


async def test_an_eviction_is_refused_with_retry_after_while_the_budget_is_not_observed(
    api: ApiClient,
) -> None:
    await _run(api)
    await _budget(api, "b", allowed=1, observed=0)
    reply = await api.post(f"{PODS}/a/eviction", eviction("a"))
    assert (reply.status, reply.headers["Retry-After"]) == (429, "10")


async def test_two_budgets_over_one_pod_are_an_error(api: ApiClient) -> None:
    await _run(api)
    await _budget(api, "b", allowed=1)
    await _budget(api, "c", allowed=1)
    assert (await api.post(f"{PODS}/a/eviction", eviction("a"))).status == 500


async def test_an_eviction_decreases_the_allowed_disruptions(api: ApiClient) -> None:
    await _run(api)
    await _budget(api, "b", allowed=1)
    assert (await api.post(f"{PODS}/a/eviction", eviction("a"))).status == 201
    status = (await api.get(f"{BUDGETS}/b")).body["status"]
    assert (status["disruptionsAllowed"], list(status["disruptedPods"])) == (0, ["a"])


async def test_events_are_served_in_both_api_groups(api: ApiClient) -> None:
    event = {
        "metadata": {"generateName": "a-"},
        "eventTime": "2026-01-02T03:04:05.000006Z",
        "reportingController": "stowage",
        "reportingInstance": "stowage-1",
        "action": "Binding",
        "reason": "Scheduled",
        "type": "Normal",
        "note": "a note",
        "regarding": {"kind": "Pod", "namespace": "default", "name": "a"},
        "series": {"count": 2, "lastObservedTime": "2026-01-02T03:04:06.000006Z"},
    }
    created = await api.create(EVENTS_V1, event)
    assert (created["note"], created["regarding"]["name"]) == ("a note", "a")
    core = (await api.get(f"{EVENTS}/{created['metadata']['name']}")).body
    assert (core["message"], core["reportingComponent"]) == ("a note", "stowage")
    assert core["involvedObject"]["name"] == "a"
    assert core["series"]["count"] == 2
    query = "fieldSelector=involvedObject.name=a,reason=Scheduled"
    assert (await api.get(f"{EVENTS}?{query}")).body["items"]
    await api.delete(f"{EVENTS_V1}/{created['metadata']['name']}")


async def test_generated_names_and_uids_are_unique(api: ApiClient) -> None:
    nameless = config_map()
    nameless["metadata"] = {"generateName": "x-"}
    first, second = [await api.create(CONFIG_MAPS, dict(nameless)) for _ in range(2)]
    assert first["metadata"]["name"] != second["metadata"]["name"]
    assert first["metadata"]["name"].startswith("x-")
    assert first["metadata"]["uid"] != second["metadata"]["uid"]


async def test_null_fields_are_treated_as_unset(api: ApiClient) -> None:
    posted = pod(nodeName=None, tolerations=None)
    posted["metadata"] |= {"annotations": None, "creationTimestamp": None}
    created = await api.create(PODS, posted)
    assert "annotations" not in created["metadata"]
    assert "nodeName" not in created["spec"]


async def test_an_eviction_for_another_uid_changes_nothing(api: ApiClient) -> None:
    created = await api.create(PODS, pod())
    body = {**eviction("a"), "deleteOptions": {"preconditions": {"uid": "0-0"}}}
    assert (await api.post(f"{PODS}/a/eviction", body)).status == 409
    assert (await api.get(f"{PODS}/a")).body["status"] == created["status"]


@pytest.mark.parametrize("token", ["", "wrong"])
async def test_a_request_without_the_token_is_unauthorized(
    api_server: ApiServerUnderTest, token: str
) -> None:
    if not api_server.token:
        pytest.skip("this server lets everyone in")
    async with ApiClient(api_server.url, token, api_server.tls) as stranger:
        reply = await stranger.get(PODS)
    assert reply.status in {401, 403}
    assert reply.body["kind"] == "Status"
