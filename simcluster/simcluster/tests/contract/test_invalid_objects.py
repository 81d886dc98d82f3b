"""Objects with invalid metadata or fields are refused with 422 and the causes."""

from typing import Any

import pytest

from simcluster.tests.contract import requests as sent
from simcluster.tests.contract.causes import (
    FORBIDDEN,
    INVALID,
    KEY,
    NEEDED,
    REQUIRED,
    UNSUPPORTED,
    Causes,
    causes,
)
from simcluster.tests.contract.requests import deployment
from simcluster.tests.support.api_client import ApiClient, config_map, node

Json = dict[str, Any]

SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    r"for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  "
    "or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
NAME = KEY.removeprefix("name part ")
LONG = "a" * 254

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
        {"metadata": {"name": "j"}, "spec": {"template": sent.TEMPLATE}},
        [
            (
                REQUIRED,
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
