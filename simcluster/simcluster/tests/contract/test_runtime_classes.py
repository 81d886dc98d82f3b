"""Pods get the overhead, node selector and tolerations of their RuntimeClass."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from simcluster.kinds.admission.runtime_classes import merged_tolerations
from simcluster.tests.contract.requests import PODS
from simcluster.tests.support.api_client import ApiClient, Reply, pod

Json = dict[str, Any]

RUNTIME_CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"
SANDBOX: Json = {
    "metadata": {"name": "sandbox"},
    "handler": "runsc",
    "overhead": {"podFixed": {"cpu": "250m", "memory": "120Mi"}},
    "scheduling": {
        "nodeSelector": {"runtime": "sandbox"},
        "tolerations": [{"key": "sandbox", "operator": "Exists", "effect": "NoSchedule"}],
    },
}


@pytest.fixture(autouse=True)
async def _runtime_classes(api: ApiClient) -> AsyncIterator[None]:
    await api.create(RUNTIME_CLASSES, SANDBOX)
    await api.create(RUNTIME_CLASSES, {"metadata": {"name": "plain"}, "handler": "runc"})
    yield
    for name in ("sandbox", "plain"):
        await api.delete(f"{RUNTIME_CLASSES}/{name}")


def refusal(reply: Reply) -> str:
    assert (reply.status, reply.body["reason"]) == (403, "Forbidden"), reply.text
    message: str = reply.body["message"]
    return message.removeprefix('pods "a" is forbidden: ')


async def test_a_pod_gets_what_its_class_says(api: ApiClient) -> None:
    spec = (await api.create(PODS, pod(runtimeClassName="sandbox", nodeSelector={"disk": "ssd"})))[
        "spec"
    ]
    assert spec["overhead"] == {"cpu": "250m", "memory": "120Mi"}
    assert spec["nodeSelector"] == {"disk": "ssd", "runtime": "sandbox"}
    assert [found["key"] for found in spec["tolerations"]] == [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
        "sandbox",
    ]


async def test_a_class_without_overhead_changes_nothing(api: ApiClient) -> None:
    spec = (await api.create(PODS, pod(runtimeClassName="plain")))["spec"]
    assert "overhead" not in spec
    assert "nodeSelector" not in spec


async def test_the_overhead_of_the_class_may_be_given_in_other_units(api: ApiClient) -> None:
    overhead = {"cpu": "0.25", "memory": "122880Ki"}
    created = await api.create(PODS, pod(runtimeClassName="sandbox", overhead=overhead))
    assert created["spec"]["overhead"] == {"cpu": "250m", "memory": "120Mi"}


async def test_a_pod_of_an_unknown_class_is_refused(api: ApiClient) -> None:
    reply = await api.post(PODS, pod(runtimeClassName="none"))
    assert refusal(reply) == 'pod rejected: RuntimeClass "none" not found'


async def test_a_pod_of_another_overhead_is_refused(api: ApiClient) -> None:
    reply = await api.post(PODS, pod(runtimeClassName="sandbox", overhead={"cpu": "1"}))
    why = "Pod's Overhead doesn't match RuntimeClass's defined Overhead"
    assert refusal(reply) == f"pod rejected: {why}"


@pytest.mark.parametrize("spec", [{}, {"runtimeClassName": "plain"}])
async def test_an_overhead_that_no_class_gives_is_refused(api: ApiClient, spec: Json) -> None:
    reply = await api.post(PODS, pod(overhead={"cpu": "1"}, **spec))
    why = "Pod Overhead set without corresponding RuntimeClass defined Overhead"
    assert refusal(reply) == f"pod rejected: {why}"


async def test_a_pod_that_selects_other_nodes_than_its_class_is_refused(api: ApiClient) -> None:
    reply = await api.post(PODS, pod(runtimeClassName="sandbox", nodeSelector={"runtime": "x"}))
    assert refusal(reply) == (
        "conflict: runtimeClass.scheduling.nodeSelector[runtime] = sandbox; "
        "pod.spec.nodeSelector[runtime] = x"
    )


ANY = {"operator": "Exists"}
KEY = {"key": "k", "operator": "Exists"}
VALUE = {"key": "k", "operator": "Equal", "value": "v", "effect": "NoSchedule"}
SHORT = {"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
LONG = {**SHORT, "tolerationSeconds": 9}
OTHER = {"key": "o", "operator": "Exists"}


@pytest.mark.parametrize(
    ("tolerations", "merged"),
    [
        ([VALUE, VALUE], [VALUE]),
        ([VALUE, KEY], [KEY]),
        ([KEY, VALUE, OTHER], [KEY, OTHER]),
        ([SHORT, LONG], [LONG]),
        ([LONG, SHORT], [LONG]),
        ([VALUE, OTHER, ANY], [ANY]),
        ([VALUE, {**VALUE, "value": "w"}], [VALUE, {**VALUE, "value": "w"}]),
        ([VALUE, {**VALUE, "effect": ""}], [{**VALUE, "effect": ""}]),
        ([VALUE, SHORT], [VALUE, SHORT]),
        ([LONG, {"key": "k", "operator": "Exists", "effect": "NoExecute"}], None),
    ],
)
def test_a_toleration_that_another_one_includes_is_left_out(
    tolerations: list[Json], merged: list[Json] | None
) -> None:
    assert merged_tolerations(tolerations) == (tolerations[1:] if merged is None else merged)
