"""Defaults that the API server sets in new objects, and values that admission decides."""

from typing import Any

import pytest

from simcluster.tests.contract import requests as sent
from simcluster.tests.contract.causes import causes
from simcluster.tests.contract.requests import TEMPLATE, deployment
from simcluster.tests.support.api_client import ApiClient, node, pod

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
    [cause] = causes(await api.post(sent.PODS, pod(os={"name": system})))
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
