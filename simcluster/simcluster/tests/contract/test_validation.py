"""Validation: objects that are refused with 422, and the causes."""

import copy
from typing import Any

import pytest

from simcluster.tests.contract import requests as sent
from simcluster.tests.contract.requests import causes, deployment
from simcluster.tests.support.api_client import ApiClient, config_map, node, pod

Json = dict[str, Any]

SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    r"for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used "
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
KEY = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  "
    "or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
NAME = KEY.removeprefix("name part ")
LONG = "a" * 254
Causes = list[tuple[str, str, str]]
REQUIRED, INVALID = "FieldValueRequired", "FieldValueInvalid"
UNSUPPORTED, FORBIDDEN = "FieldValueNotSupported", "FieldValueForbidden"
DUPLICATE, NOT_FOUND = "FieldValueDuplicate", "FieldValueNotFound"

C: Json = {"name": "c", "image": "x:1"}
NEEDED = "Required value"


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


METADATA: list[tuple[Json, Causes]] = [
    (
        {"name": "A_b"},
        [(INVALID, "metadata.name", f'Invalid value: "A_b": {SUBDOMAIN}')],
    ),
    (
        {"name": LONG},
        [
            (
                INVALID,
                "metadata.name",
                f'Invalid value: "{"a" * 254}": must be no more than 253 characters',
            )
        ],
    ),
    ({}, [(REQUIRED, "metadata.name", f"{NEEDED}: name or generateName is required")]),
    (
        {"name": "a", "labels": {"x": "y z"}},
        [(INVALID, "metadata.labels", f'Invalid value: "y z": {VALUE}')],
    ),
    (
        {"name": "a", "labels": {"x/y/z": "v"}},
        [
            (
                INVALID,
                "metadata.labels",
                (
                    f'Invalid value: "x/y/z": a valid label key {NAME} with an '
                    "optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
                ),
            )
        ],
    ),
    (
        {"name": "a", "annotations": {"a b": "c"}},
        [(INVALID, "metadata.annotations", f'Invalid value: "a b": {KEY}')],
    ),
    (
        {"name": "a", "finalizers": ["example.com/a b"]},
        [(INVALID, "metadata.finalizers", f'Invalid value: "example.com/a b": {KEY}')],
    ),
]


@pytest.mark.parametrize(("metadata", "expected"), METADATA)
async def test_invalid_metadata_is_refused(
    api: ApiClient, metadata: Json, expected: Causes
) -> None:
    body = {**config_map(), "metadata": metadata}
    assert causes(await api.post(sent.CONFIG_MAPS, body)) == expected


async def test_a_selector_must_match_its_template(api: ApiClient) -> None:
    wrong = deployment(selector={"matchLabels": {"app": "other"}})
    reply = await api.post(sent.DEPLOYMENTS, wrong)
    message = 'Invalid value: {"app":"w"}: `selector` does not match template `labels`'
    assert causes(reply) == [(INVALID, "spec.template.metadata.labels", message)]
    assert reply.body["message"].startswith('Deployment.apps "w" is invalid: ')
    assert reply.body["details"]["group"] == "apps"


async def test_a_selector_cannot_be_changed(api: ApiClient) -> None:
    await api.create(sent.DEPLOYMENTS, deployment())
    other = deployment(selector={"matchLabels": {"app": "x"}})
    other["spec"]["template"]["metadata"]["labels"] = {"app": "x"}
    message = 'Invalid value: {"matchLabels":{"app":"x"}}: field is immutable'
    reply = await api.put(f"{sent.DEPLOYMENTS}/w", other)
    assert causes(reply) == [(INVALID, "spec.selector", message)]


ZERO = "must be greater than or equal to 0"
OTHERS: list[tuple[str, Json, Causes]] = [
    (
        sent.DEPLOYMENTS,
        deployment(replicas=-1),
        [(INVALID, "spec.replicas", f"Invalid value: -1: {ZERO}")],
    ),
    (
        sent.JOBS,
        {"metadata": {"name": "j"}, "spec": {"template": {"spec": container()}}},
        [
            (
                "FieldValueRequired",
                "spec.template.spec.restartPolicy",
                'Required value: valid values: "OnFailure", "Never"',
            )
        ],
    ),
    (
        sent.CONFIG_MAPS,
        {"metadata": {"name": "a"}, "data": {"a b": "c"}},
        [
            (
                INVALID,
                "data[a b]",
                (
                    'Invalid value: "a b": a valid config key must consist of alphanumeric '
                    "characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', "
                    "regex used for validation is '[-._a-zA-Z0-9]+')"
                ),
            )
        ],
    ),
    (
        sent.NODES,
        {**node("t"), "spec": {"taints": [{"key": "a", "effect": "Never"}]}},
        [
            (
                UNSUPPORTED,
                "metadata.taints[0].effect",
                (
                    'Unsupported value: "Never": supported values: "NoSchedule", '
                    '"PreferNoSchedule", "NoExecute"'
                ),
            )
        ],
    ),
    (
        sent.BUDGETS,
        {"metadata": {"name": "b"}, "spec": {"minAvailable": -1}},
        [(INVALID, "spec.minAvailable", f"Invalid value: -1: {ZERO}")],
    ),
    (
        sent.CLASSES,
        {"metadata": {"name": "c"}, "value": 2_000_000_000},
        [
            (
                FORBIDDEN,
                "value",
                "Forbidden: maximum allowed value of a user defined priority is 1000000000",
            )
        ],
    ),
    (
        sent.LEASES,
        {"metadata": {"name": "l"}, "spec": {"leaseDurationSeconds": 0}},
        [(INVALID, "spec.leaseDurationSeconds", "Invalid value: 0: must be greater than 0")],
    ),
    (
        sent.CLAIMS,
        {"metadata": {"name": "c"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}},
        [(REQUIRED, "spec.accessModes", f"{NEEDED}: at least 1 access mode is required")],
    ),
    (
        sent.STORAGE_CLASSES,
        {"metadata": {"name": "s"}},
        [(REQUIRED, "provisioner", NEEDED)],
    ),
]


@pytest.mark.parametrize(("path", "body", "expected"), OTHERS)
async def test_invalid_fields_of_other_kinds_are_refused(
    api: ApiClient, path: str, body: Json, expected: Causes
) -> None:
    assert causes(await api.post(path, body)) == expected


async def test_users_cannot_create_system_priority_classes(api: ApiClient) -> None:
    reply = await api.post(sent.CLASSES, {"metadata": {"name": "system-mine"}, "value": 1})
    assert causes(reply) == [
        (
            FORBIDDEN,
            "metadata.name",
            (
                "Forbidden: priority class names with 'system-' prefix are reserved for system use "
                "only. error: system-mine is not a known system priority class"
            ),
        )
    ]
