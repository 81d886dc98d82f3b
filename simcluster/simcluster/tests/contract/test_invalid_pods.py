"""Pods with invalid fields are refused with 422 and the causes; restart rules are not."""

import copy
from typing import Any

import pytest

from simcluster.tests.contract import requests as sent
from simcluster.tests.contract.causes import (
    DUPLICATE,
    FORBIDDEN,
    INVALID,
    KEY,
    NEEDED,
    NOT_FOUND,
    REQUIRED,
    UNSUPPORTED,
    Causes,
    causes,
)
from simcluster.tests.support.api_client import ApiClient, pod

Json = dict[str, Any]

LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used "
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)

C: Json = {"name": "c", "image": "x:1"}


def container(**fields: Any) -> Json:
    return {"containers": [{**C, **fields}]}


def restart_rule(action: str = "RestartAllContainers", operator: str = "In") -> Json:
    return {"action": action, "exitCodes": {"operator": operator, "values": [1]}}


def amounts(**kinds: Json) -> Json:
    return container(resources=kinds)


def required_affinity(term: Json) -> Json:
    return {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def node_affinity(requirement: Json) -> Json:
    terms = [{"matchExpressions": [requirement]}]
    selector = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"affinity": {"nodeAffinity": selector}}


AFFINITY = "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]"
NODE_TERM = (
    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
    ".nodeSelectorTerms[0].matchExpressions[0]"
)
SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
PULL = '"Always", "IfNotPresent", "Never"'

POD_SPECS: list[tuple[Json, Causes]] = [
    ({"containers": []}, [(REQUIRED, "spec.containers", NEEDED)]),
    (
        {"containers": [{"image": "x"}]},
        [(REQUIRED, "spec.containers[0].name", NEEDED)],
    ),
    ({"containers": [{"name": "c"}]}, [(REQUIRED, "spec.containers[0].image", NEEDED)]),
    (
        container(name="C_1"),
        [(INVALID, "spec.containers[0].name", f'Invalid value: "C_1": {LABEL}')],
    ),
    (
        {"containers": [C, C]},
        [(DUPLICATE, "spec.containers[1].name", 'Duplicate value: "c"')],
    ),
    (
        container(imagePullPolicy="Often"),
        [
            (
                UNSUPPORTED,
                "spec.containers[0].imagePullPolicy",
                f'Unsupported value: "Often": supported values: {PULL}',
            )
        ],
    ),
    (
        container(ports=[{"containerPort": 70000}]),
        [
            (
                INVALID,
                "spec.containers[0].ports[0].containerPort",
                "Invalid value: 70000: must be between 1 and 65535, inclusive",
            )
        ],
    ),
    (
        container(ports=[{"containerPort": 80, "protocol": "ICMP"}]),
        [
            (
                UNSUPPORTED,
                "spec.containers[0].ports[0].protocol",
                'Unsupported value: "ICMP": supported values: "SCTP", "TCP", "UDP"',
            )
        ],
    ),
    (
        container(volumeMounts=[{"name": "v", "mountPath": "/v"}]),
        [(NOT_FOUND, "spec.containers[0].volumeMounts[0].name", 'Not found: "v"')],
    ),
    (
        amounts(requests={"cpu": "-1"}),
        [
            (
                INVALID,
                "spec.containers[0].resources.requests[cpu]",
                'Invalid value: "-1": must be greater than or equal to 0',
            )
        ],
    ),
    (
        amounts(requests={"cpu": "2"}, limits={"cpu": "1"}),
        [
            (
                INVALID,
                "spec.containers[0].resources.requests",
                'Invalid value: "2": must be less than or equal to cpu limit of 1',
            )
        ],
    ),
    (
        amounts(requests={"example.com/gpu": "1"}),
        [
            (
                REQUIRED,
                "spec.containers[0].resources.limits",
                f"{NEEDED}: Limit must be set for non overcommitable resources",
            )
        ],
    ),
    (
        amounts(limits={"example.com/gpu": "500m"}),
        [
            (
                INVALID,
                f"spec.containers[0].resources.{kind}[example.com/gpu]",
                'Invalid value: "500m": must be an integer',
            )
            for kind in ("limits", "requests")
        ],
    ),
    (
        {"restartPolicy": "Sometimes"},
        [
            (
                UNSUPPORTED,
                "spec.restartPolicy",
                'Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"',
            )
        ],
    ),
    (
        {"nodeSelector": {"a b": "c"}},
        [(INVALID, "spec.nodeSelector", f'Invalid value: "a b": {KEY}')],
    ),
    (
        {"tolerations": [{"key": "a", "operator": "Maybe"}]},
        [
            (
                UNSUPPORTED,
                "spec.tolerations[0].operator",
                'Unsupported value: "Maybe": supported values: "Equal", "Exists"',
            )
        ],
    ),
    (
        {"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]},
        [
            (
                INVALID,
                "spec.tolerations[0].operator",
                "Invalid value: \"b\": value must be empty when `operator` is 'Exists'",
            )
        ],
    ),
    (
        {"tolerations": [{"key": "a", "effect": "NoSchedule", "tolerationSeconds": 5}]},
        [
            (
                INVALID,
                "spec.tolerations[0].effect",
                (
                    "Invalid value: \"NoSchedule\": effect must be 'NoExecute' when "
                    "`tolerationSeconds` is set"
                ),
            )
        ],
    ),
    (
        {"tolerations": [{"value": "b"}]},
        [
            (
                INVALID,
                "spec.tolerations[0].operator",
                (
                    'Invalid value: "": operator must be Exists when `key` is empty, which means '
                    '"match all values and all keys"'
                ),
            )
        ],
    ),
    (
        node_affinity({"key": "a", "operator": "In"}),
        [
            (
                REQUIRED,
                f"{NODE_TERM}.values",
                f"{NEEDED}: must be specified when `operator` is 'In' or 'NotIn'",
            )
        ],
    ),
    (
        node_affinity({"key": "a", "operator": "Near"}),
        [
            (
                INVALID,
                f"{NODE_TERM}.operator",
                'Invalid value: "Near": not a valid selector operator',
            )
        ],
    ),
    (
        required_affinity({"labelSelector": {"matchLabels": {"a": "b"}}}),
        [
            (REQUIRED, f"{AFFINITY}.topologyKey", f"{NEEDED}: can not be empty"),
            (INVALID, f"{AFFINITY}.topologyKey", 'Invalid value: "": name part must be non-empty'),
            (INVALID, f"{AFFINITY}.topologyKey", f'Invalid value: "": {KEY}'),
        ],
    ),
    (
        {"topologySpreadConstraints": [{**SPREAD, "maxSkew": 0}]},
        [
            (
                INVALID,
                "spec.topologySpreadConstraints[0].maxSkew",
                "Invalid value: 0: must be greater than zero",
            )
        ],
    ),
    (
        {"topologySpreadConstraints": [{**SPREAD, "whenUnsatisfiable": "Maybe"}]},
        [
            (
                UNSUPPORTED,
                "spec.topologySpreadConstraints[0].whenUnsatisfiable",
                'Unsupported value: "Maybe": supported values: "DoNotSchedule", "ScheduleAnyway"',
            )
        ],
    ),
    (
        {"topologySpreadConstraints": [SPREAD, SPREAD]},
        [
            (
                DUPLICATE,
                "spec.topologySpreadConstraints[1].{topologyKey, whenUnsatisfiable}",
                'Duplicate value: "{zone, DoNotSchedule}"',
            )
        ],
    ),
    (
        {"schedulingGates": [{"name": "example.com/a"}, {"name": "example.com/a"}]},
        [(DUPLICATE, "spec.schedulingGates[1]", 'Duplicate value: "example.com/a"')],
    ),
    (
        {"schedulingGates": [{"name": "example.com/a"}], "nodeName": "n"},
        [
            (
                FORBIDDEN,
                "spec.nodeName",
                "Forbidden: cannot be set until all schedulingGates have been cleared",
            )
        ],
    ),
    (
        {"activeDeadlineSeconds": 0},
        [
            (
                INVALID,
                "spec.activeDeadlineSeconds",
                "Invalid value: 0: must be between 1 and 2147483647, inclusive",
            )
        ],
    ),
    (
        container(restartPolicyRules=[restart_rule()]),
        [
            (
                REQUIRED,
                "spec.containers[0].restartPolicy",
                f"{NEEDED}: must specify restartPolicy when restart rules are used",
            )
        ],
    ),
    (
        container(restartPolicy="Never", restartPolicyRules=[restart_rule("Stop", "Equals")]),
        [
            (
                UNSUPPORTED,
                "spec.containers[0].restartPolicyRules[0].action",
                ('Unsupported value: "Stop": supported values: "Restart", "RestartAllContainers"'),
            ),
            (
                UNSUPPORTED,
                "spec.containers[0].restartPolicyRules[0].exitCodes.operator",
                'Unsupported value: "Equals": supported values: "In", "NotIn"',
            ),
        ],
    ),
]


@pytest.mark.parametrize(("spec", "expected"), POD_SPECS)
async def test_invalid_fields_of_a_pod_are_refused(
    api: ApiClient, spec: Json, expected: Causes
) -> None:
    reply = await api.post(sent.PODS, pod("invalid", **copy.deepcopy(spec)))
    assert causes(reply) == expected
    assert reply.body["details"]["kind"] == "Pod"
    texts = [f"{field}: {message}" for _, field, message in expected]
    listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    assert reply.body["message"] == f'Pod "invalid" is invalid: {listed}'


@pytest.mark.parametrize("policy", ["Always", "Never", "OnFailure"])
@pytest.mark.parametrize("kind", ["containers", "initContainers"])
async def test_a_container_has_a_restart_policy_and_rules_of_its_own(
    api: ApiClient, kind: str, policy: str
) -> None:
    restarts = {"restartPolicy": policy, "restartPolicyRules": [restart_rule()]}
    spec = {"containers": [C], kind: [{**C, "name": "restarts", **restarts}]}
    reply = await api.post(sent.PODS, pod("restarts", **spec))
    assert reply.status == 201
    assert reply.body["spec"][kind][0]["restartPolicyRules"] == [restart_rule()]
