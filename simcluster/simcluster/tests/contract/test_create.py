"""POST: defaults, request bodies and unknown fields."""

from typing import Any

import pytest

from simcluster.tests.contract import requests as sent
from simcluster.tests.contract.requests import TEMPLATE, deployment
from simcluster.tests.support.api_client import ApiClient, config_map, node, pod

Json = dict[str, Any]


def without(obj: Json, *keys: str) -> Json:
    return {key: value for key, value in obj.items() if key not in keys}


async def test_defaults_are_set_in_a_pod(api: ApiClient) -> None:
    created = await api.create(
        sent.PODS,
        {
            "metadata": {"name": "a"},
            "spec": {
                "serviceAccountName": "default",
                "volumes": [{"name": "v"}, {"name": "w", "configMap": {"name": "m"}}],
                "containers": [
                    {
                        "name": "c",
                        "image": "x",
                        "ports": [{"containerPort": 80}],
                        "livenessProbe": {"httpGet": {"port": 80}},
                        "env": [
                            {"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
                        ],
                    }
                ],
            },
        },
    )
    spec = created["spec"]
    probe = {
        "httpGet": {"path": "/", "port": 80, "scheme": "HTTP"},
        "timeoutSeconds": 1,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 3,
    }
    reference = {"apiVersion": "v1", "fieldPath": "metadata.name"}
    assert spec["containers"] == [
        {
            "name": "c",
            "image": "x",
            "ports": [{"containerPort": 80, "protocol": "TCP"}],
            "env": [{"name": "N", "valueFrom": {"fieldRef": reference}}],
            "resources": {},
            "livenessProbe": probe,
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
            "imagePullPolicy": "Always",
        }
    ]
    assert spec["volumes"] == [
        {"name": "v", "emptyDir": {}},
        {"name": "w", "configMap": {"name": "m", "defaultMode": 420}},
    ]
    assert without(spec, "containers", "volumes", "tolerations") == {
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "serviceAccountName": "default",
        "serviceAccount": "default",
        "securityContext": {},
        "schedulerName": "default-scheduler",
        "priority": 0,
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
    }


async def test_a_pod_without_a_priority_class_has_no_preemption_policy_of_its_own(
    api: ApiClient,
) -> None:
    reply = await api.post(sent.PODS, pod(preemptionPolicy="Never"))
    assert reply.status == 403
    assert reply.body["message"] == (
        'pods "a" is forbidden: the string value of PreemptionPolicy (Never) must not be provided '
        "in pod spec; priority admission controller computed PreemptLowerPriority from the given "
        "PriorityClass name"
    )


async def test_a_change_makes_no_second_global_default(api: ApiClient) -> None:
    for name, is_default in (("first", True), ("second", False)):
        body = {"metadata": {"name": name}, "value": 1, "globalDefault": is_default}
        await api.create(sent.CLASSES, body)
    try:
        reply = await api.patch(f"{sent.CLASSES}/second", {"globalDefault": True})
        assert reply.status == 403
        assert reply.body["message"] == (
            'priorityclasses.scheduling.k8s.io "second" is forbidden: PriorityClass first is '
            "already marked as default. Only one default can exist"
        )
        again = await api.patch(f"{sent.CLASSES}/first", {"description": "the default"})
        assert again.status == 200
    finally:
        for name in ("first", "second"):
            await api.delete(f"{sent.CLASSES}/{name}")


@pytest.mark.parametrize(
    ("system", "field", "message"),
    [
        ("x", "spec.os", 'Unsupported value: "x": supported values: "linux", "windows"'),
        ("", "spec.os.name", "Required value: cannot be empty"),
    ],
)
async def test_a_pod_is_for_a_known_operating_system(
    api: ApiClient, system: str, field: str, message: str
) -> None:
    [cause] = sent.causes(await api.post(sent.PODS, pod(os={"name": system})))
    assert cause[1:] == (field, message)


async def test_defaults_are_set_in_a_deployment(api: ApiClient) -> None:
    spec = (await api.create(sent.DEPLOYMENTS, deployment()))["spec"]
    assert without(spec, "template", "selector") == {
        "replicas": 1,
        "strategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"},
        },
        "revisionHistoryLimit": 10,
        "progressDeadlineSeconds": 600,
    }
    assert "enableServiceLinks" not in spec["template"]["spec"]


async def test_defaults_are_set_in_a_stateful_set_and_a_job(api: ApiClient) -> None:
    selector = {"matchLabels": {"app": "w"}}
    wanted = {"selector": selector, "serviceName": "s", "template": TEMPLATE}
    stateful = await api.create(sent.STATEFUL_SETS, {"metadata": {"name": "s"}, "spec": wanted})
    assert without(stateful["spec"], "template", "selector", "serviceName") == {
        "replicas": 1,
        "podManagementPolicy": "OrderedReady",
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
        "revisionHistoryLimit": 10,
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
    }
    assert stateful["status"] == {"replicas": 0, "availableReplicas": 0}
    template = {"spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}
    job = await api.create(sent.JOBS, {"metadata": {"name": "j"}, "spec": {"template": template}})
    uid = job["metadata"]["uid"]
    assert without(job["spec"], "template") == {
        "parallelism": 1,
        "completions": 1,
        "backoffLimit": 6,
        "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}},
        "completionMode": "NonIndexed",
        "suspend": False,
        "podReplacementPolicy": "TerminatingOrFailed",
    }


async def test_the_string_data_of_a_secret_is_encoded(api: ApiClient) -> None:
    body = {"metadata": {"name": "s"}, "stringData": {"a": "b"}, "data": {"c": "ZA=="}}
    created = await api.create(sent.SECRETS, body)
    assert (created["type"], created["data"]) == ("Opaque", {"a": "Yg==", "c": "ZA=="})
    assert "stringData" not in created
    await api.delete(f"{sent.SECRETS}/s")


async def test_services_get_the_defaults_of_their_type(api: ApiClient) -> None:
    port = {"port": 80}
    plain = await api.create(sent.SERVICES, {"metadata": {"name": "p"}, "spec": {"ports": [port]}})
    spec = plain["spec"]
    assert spec["ports"] == [{"protocol": "TCP", "port": 80, "targetPort": 80}]
    assert spec["clusterIPs"] == [spec["clusterIP"]]
    assert without(spec, "ports", "clusterIP", "clusterIPs") == {
        "type": "ClusterIP",
        "sessionAffinity": "None",
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
        "internalTrafficPolicy": "Cluster",
    }
    open_spec = {"ports": [port], "type": "NodePort"}
    opened = await api.create(sent.SERVICES, {"metadata": {"name": "n"}, "spec": open_spec})
    assert 30000 <= opened["spec"]["ports"][0]["nodePort"] < 32768
    assert opened["spec"]["externalTrafficPolicy"] == "Cluster"


async def test_defaults_are_set_in_a_node(api: ApiClient) -> None:
    status = (await api.create(sent.NODES, node("n")))["status"]
    assert status["daemonEndpoints"] == {"kubeletEndpoint": {"Port": 0}}
    assert status["nodeInfo"]["kubeletVersion"] == ""


MISMATCHES: list[tuple[str, Json, str]] = [
    (
        sent.PODS,
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}},
        'ConfigMap in version "v1" cannot be handled as a Pod',
    ),
    (
        sent.PODS,
        {**pod(), "apiVersion": "v7"},
        (
            'Pod in version "v7" cannot be handled as a Pod: no kind "Pod" is registered for '
            'version "v7" in scheme'
        ),
    ),
    (
        sent.PODS,
        {**pod(), "metadata": {"name": "a", "namespace": "other"}},
        "the namespace of the provided object does not match the namespace sent on the request",
    ),
    (
        sent.PODS,
        pod(containers="many"),
        (
            'Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal string into Go '
            "struct field PodSpec.spec.containers of type []v1.Container"
        ),
    ),
    (
        sent.PODS,
        pod(containers=[{"name": "c", "resources": {"limits": {"cpu": "a lot"}}}]),
        (
            'Pod in version "v1" cannot be handled as a Pod: quantities must match the regular '
            "expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        ),
    ),
    (
        sent.CONFIG_MAPS,
        {"metadata": {"name": "a"}, "data": {"a": 1}},
        (
            'ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal '
            "number into Go struct field ConfigMap.data of type string"
        ),
    ),
]


@pytest.mark.parametrize(("path", "body", "message"), MISMATCHES)
async def test_a_body_that_is_not_the_expected_object_is_a_bad_request(
    api: ApiClient, path: str, body: Json, message: str
) -> None:
    reply = await api.post(path, body)
    assert (reply.status, reply.body["reason"]) == (400, "BadRequest")
    assert reply.body["message"].startswith(message)


UNKNOWN = {**pod("u"), "colour": "red"}


async def test_unknown_fields_are_dropped_with_a_warning(api: ApiClient) -> None:
    reply = await api.post(sent.PODS, UNKNOWN)
    assert reply.status == 201
    assert reply.headers["Warning"] == '299 - "unknown field \\"colour\\""'
    assert "colour" not in reply.body
    ignored = await api.post(f"{sent.PODS}?fieldValidation=Ignore&dryRun=All", {**pod("v"), "x": 1})
    assert (ignored.status, "Warning" in ignored.headers) == (201, False)


async def test_unknown_fields_are_refused_with_strict_validation(api: ApiClient) -> None:
    body = pod("u", flavour=1)
    reply = await api.post(f"{sent.PODS}?fieldValidation=Strict", body)
    assert reply.status == 400
    assert reply.body["message"] == (
        'Pod in version "v1" cannot be handled as a Pod: strict decoding error: unknown field '
        '"spec.flavour"'
    )


async def test_duplicate_fields_are_reported_too(api: ApiClient) -> None:
    url = f"{sent.CONFIG_MAPS}?fieldValidation=Strict"
    text = '{"metadata":{"name":"a"},"data":{"x":"1","x":"2"}}'
    reply = await api.post(url, text.encode())
    assert reply.status == 400
    assert reply.body["message"] == (
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: '
        'duplicate field "data.x"'
    )


YAML_WITH_DUPLICATES = b"""\
metadata:
  name: a
  name: b
data: {x: "1", x: "2"}
unknown: 1
data:
  y: "3"
"""
LINES = [
    'line 3: key "name" already set in map',
    'line 4: key "x" already set in map',
    'line 7: key "data" already set in map',
]


async def test_duplicate_keys_of_yaml_are_refused_by_their_lines(api: ApiClient) -> None:
    url = f"{sent.CONFIG_MAPS}?fieldValidation=Strict"
    reply = await api.request("POST", url, YAML_WITH_DUPLICATES, "application/yaml")
    assert reply.status == 400
    lines = "\n  ".join(LINES)
    assert reply.body["message"] == (
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: yaml: '
        f'unmarshal errors:\n  {lines}, unknown field "unknown"'
    )


async def test_duplicate_keys_of_yaml_cause_warnings(api: ApiClient) -> None:
    reply = await api.request("POST", sent.CONFIG_MAPS, YAML_WITH_DUPLICATES, "application/yaml")
    assert (reply.status, reply.body["metadata"]["name"]) == (201, "b")
    assert reply.body["data"] == {"y": "3"}
    assert reply.warnings == [*LINES, 'unknown field "unknown"']


async def test_duplicate_keys_are_ignored_on_request(api: ApiClient) -> None:
    url = f"{sent.CONFIG_MAPS}?fieldValidation=Ignore"
    reply = await api.request("POST", url, YAML_WITH_DUPLICATES, "application/yaml")
    assert (reply.status, reply.warnings) == (201, [])


async def test_unknown_option_values_are_refused(api: ApiClient) -> None:
    reply = await api.post(f"{sent.CONFIG_MAPS}?dryRun=Some", config_map())
    assert reply.status == 422
    assert reply.body["details"]["kind"] == "CreateOptions"
    assert reply.body["details"]["causes"][0]["field"] == "dryRun"


async def test_a_dry_run_has_the_answer_of_the_real_request(api: ApiClient) -> None:
    reply = await api.post(f"{sent.CONFIG_MAPS}?dryRun=All", config_map("dry"))
    assert reply.status == 201
    assert reply.body["metadata"]["uid"]
    assert "resourceVersion" not in reply.body["metadata"]
    assert (await api.get(f"{sent.CONFIG_MAPS}/dry")).status == 404


async def test_an_existing_object_is_not_created_again(api: ApiClient) -> None:
    await api.create(sent.DEPLOYMENTS, deployment())
    reply = await api.post(sent.DEPLOYMENTS, deployment())
    assert (reply.status, reply.body["reason"]) == (409, "AlreadyExists")
    assert reply.body["message"] == 'deployments.apps "w" already exists'
    assert reply.body["details"] == {"name": "w", "group": "apps", "kind": "deployments"}


async def test_objects_need_an_existing_namespace(api: ApiClient) -> None:
    reply = await api.post("/api/v1/namespaces/nowhere/configmaps", config_map())
    assert (reply.status, reply.body["message"]) == (404, 'namespaces "nowhere" not found')
    assert reply.body["details"] == {"name": "nowhere", "kind": "namespaces"}


async def test_a_terminating_namespace_takes_no_new_objects(api: ApiClient) -> None:
    name = "going-contract"
    await api.post(sent.NAMESPACES, {"metadata": {"name": name, "finalizers": ["example.com/a"]}})
    await api.delete(f"{sent.NAMESPACES}/{name}")
    reply = await api.post(f"/api/v1/namespaces/{name}/configmaps", config_map())
    assert (reply.status, reply.body["reason"]) == (403, "Forbidden")
    assert reply.body["message"] == (
        f'configmaps "a" is forbidden: unable to create new content in namespace {name} because it '
        "is being terminated"
    )
    assert reply.body["details"]["causes"] == [
        {
            "reason": "NamespaceTerminating",
            "message": f"namespace {name} is being terminated",
            "field": "metadata.namespace",
        }
    ]


async def test_a_priority_that_differs_from_its_priority_class_is_forbidden(api: ApiClient) -> None:
    unknown = await api.post(sent.PODS, pod(priorityClassName="nosuch"))
    assert unknown.status == 403
    assert unknown.body["message"] == (
        'pods "a" is forbidden: no PriorityClass with name nosuch was found'
    )
    own = await api.post(sent.PODS, pod(priority=7))
    assert own.status == 403
    assert own.body["message"] == (
        'pods "a" is forbidden: the integer value of priority (7) must not be provided in pod '
        "spec; priority admission controller computed 0 from the given PriorityClass name"
    )


async def test_a_name_may_be_generated(api: ApiClient) -> None:
    body = config_map()
    body["metadata"] = {"generateName": "made-"}
    created = await api.create(sent.CONFIG_MAPS, body)
    assert len(created["metadata"]["name"]) == len("made-") + 5
    assert created["metadata"]["generateName"] == "made-"


async def test_a_finalizer_must_have_a_domain(api: ApiClient) -> None:
    body = config_map()
    body["metadata"]["finalizers"] = ["mine"]
    reply = await api.post(sent.CONFIG_MAPS, body)
    assert sent.causes(reply) == [
        (
            "FieldValueInvalid",
            "metadata.finalizers[0]",
            (
                'Invalid value: "mine": name is neither a standard finalizer name nor is it fully '
                "qualified"
            ),
        )
    ]


async def test_defaults_are_set_in_a_pod_with_pod_level_resources(api: ApiClient) -> None:
    limits = {"cpu": "2", "memory": "1Gi"}
    container = {"name": "c", "image": "x:1", "resources": {"requests": {"memory": "100Mi"}}}
    spec: Json = {"containers": [container], "resources": {"limits": limits}}
    made = await api.create(f"{sent.PODS}?dryRun=All", pod(**spec))
    assert made["spec"]["resources"]["requests"] == {"cpu": "2", "memory": "100Mi"}
    assert made["status"]["qosClass"] == "Burstable"
    spec["containers"] = [{"name": "c", "image": "x:1"}]
    made = await api.create(f"{sent.PODS}?dryRun=All", pod(**spec))
    assert made["spec"]["resources"]["requests"] == limits
    assert made["status"]["qosClass"] == "Guaranteed"


async def test_an_empty_dry_run_is_refused(api: ApiClient) -> None:
    reply = await api.post(f"{sent.CONFIG_MAPS}?dryRun=", config_map())
    assert (reply.status, reply.body["message"]) == (
        422,
        (
            'CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: [""]: supported '
            'values: "All"'
        ),
    )


async def test_the_version_of_an_owner_has_one_slash_at_most(api: ApiClient) -> None:
    body = config_map()
    owner = {"apiVersion": "a/b/c", "kind": "X", "name": "x", "uid": "u"}
    body["metadata"]["ownerReferences"] = [owner]
    reply = await api.post(sent.CONFIG_MAPS, body)
    assert sent.causes(reply) == [
        (
            "FieldValueInvalid",
            "metadata.ownerReferences.apiVersion",
            'Invalid value: "a/b/c": version must not be empty',
        )
    ]


@pytest.mark.parametrize("version", ["0", "abc"])
async def test_a_resource_version_that_names_no_revision_is_ignored(
    api: ApiClient, version: str
) -> None:
    body = config_map()
    body["metadata"]["resourceVersion"] = version
    assert (await api.post(sent.CONFIG_MAPS, body)).status == 201
