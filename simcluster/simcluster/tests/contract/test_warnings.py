"""``Warning`` headers for objects that are valid, but probably mistaken."""

from typing import Any

import pytest

from simcluster.tests.contract import requests as sent
from simcluster.tests.contract.requests import TEMPLATE, deployment
from simcluster.tests.support.api_client import ApiClient, pod

Json = dict[str, Any]

ZONE = "failure-domain.beta.kubernetes.io/zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
NO_POD = "a null labelSelector results in matching no pod"


def constraint(key: str, **more: Any) -> Json:
    return {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", **more}


def container(**more: Any) -> list[Json]:
    return [{"name": "c", "image": "x:1", **more}]


PORT = {"containerPort": 80}
SELECTS = {"labelSelector": {"matchLabels": {"a": "b"}}}
WARNED: list[tuple[Json, list[str]]] = [
    ({}, []),
    (
        {"topologySpreadConstraints": [constraint("zone")]},
        [f"spec.topologySpreadConstraints[0].labelSelector: {NO_POD}"],
    ),
    (
        {"topologySpreadConstraints": [constraint(ZONE, **SELECTS)]},
        [
            (
                f"spec.topologySpreadConstraints[0].topologyKey: {ZONE} is deprecated since v1.17; "
                'use "topology.kubernetes.io/zone" instead'
            )
        ],
    ),
    (
        {"affinity": {"podAntiAffinity": {REQUIRED: [{"topologyKey": "zone"}]}}},
        [f"spec.affinity.podAntiAffinity.{REQUIRED}[0].labelSelector: {NO_POD}"],
    ),
    (
        {"nodeSelector": {"beta.kubernetes.io/os": "linux"}},
        [
            (
                "spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; "
                'use "kubernetes.io/os" instead'
            )
        ],
    ),
    (
        {"terminationGracePeriodSeconds": -1},
        [
            (
                "spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and "
                "will be treated as 1"
            )
        ],
    ),
    (
        {"containers": container(env=[{"name": "A", "value": "1"}, {"name": "A", "value": "2"}])},
        [
            (
                'spec.containers[0].env[1]: hides previous definition of "A", which may be dropped '
                "when using apply"
            )
        ],
    ),
    (
        {"containers": container(ports=[PORT, PORT])},
        ["spec.containers[0].ports[1]: duplicate port definition with spec.containers[0].ports[0]"],
    ),
    (
        {"containers": container(resources={"requests": {"memory": "100m"}})},
        [
            (
                'spec.containers[0].resources.requests[memory]: fractional byte value "100m" is '
                "invalid, must be an integer"
            )
        ],
    ),
]


@pytest.mark.parametrize(("spec", "expected"), WARNED)
async def test_suspicious_fields_of_a_pod_cause_warnings(
    api: ApiClient, spec: Json, expected: list[str]
) -> None:
    reply = await api.post(f"{sent.PODS}?dryRun=All", pod(**spec))
    assert reply.status == 201, reply.text
    assert reply.warnings == expected


async def test_a_name_that_is_not_a_dns_label_causes_a_warning(api: ApiClient) -> None:
    advice = "which can result in surprising behavior; a DNS label is recommended: [{}]"
    why = advice.format("must not contain dots")
    reply = await api.post(f"{sent.PODS}?dryRun=All", pod("a.b"))
    assert reply.warnings == [f"metadata.name: this is used in the Pod's hostname, {why}"]
    reply = await api.post(f"{sent.DEPLOYMENTS}?dryRun=All", deployment("a.b"))
    assert reply.warnings == [f"metadata.name: this is used in Pod names and hostnames, {why}"]


async def test_a_pod_template_causes_warnings_only_when_it_may_have_changed(api: ApiClient) -> None:
    spec = {**TEMPLATE["spec"], "topologySpreadConstraints": [constraint("zone")]}
    template = {**TEMPLATE, "spec": spec}
    expected = [f"spec.template.spec.topologySpreadConstraints[0].labelSelector: {NO_POD}"]
    made = await api.post(sent.DEPLOYMENTS, deployment(template=template, replicas=0))
    assert made.warnings == expected
    path = f"{sent.DEPLOYMENTS}/w"
    assert (await api.patch(path, {"spec": {"replicas": 1}})).warnings == expected
    assert (await api.patch(path, {"metadata": {"labels": {"a": "b"}}})).warnings == []
