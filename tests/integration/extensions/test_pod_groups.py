"""Pod groups are honoured as soon as the API server serves them, and nowhere else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from simcluster import ClusterOptions, SimulatedCluster
from simcluster.auth.rbac import Decision
from simcluster.auth.request_attributes import Attributes
from simcluster.auth.users import User
from simcluster.features import read_features
from simcluster.tests.support.api_client import ApiClient
from simcluster.tests.support.timeouts import wait_until
from stowage.api.config.feature_gates import parse_feature_gates
from stowage.operator.watch import pod_groups
from tests.integration.scheduling.cluster import Cluster
from tests.support.integration.auditor import scheduled_condition
from tests.support.integration.running_scheduler import running_scheduler

Json = dict[str, Any]

DEFINITION: Json = yaml.safe_load(
    Path("examples/gangs/coscheduling-definition.yaml").read_text(encoding="utf-8")
)
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
COSCHEDULING = "/apis/scheduling.x-k8s.io/v1alpha1"
CORE = "/apis/scheduling.k8s.io/v1alpha2"
LABELS = {"scheduling.x-k8s.io/pod-group": "g"}
TOKEN = "administrator"
PLAIN = ClusterOptions(token=TOKEN, rbac=True, with_kubelet=False, with_controllers=False)
SERVED = replace(
    PLAIN, gates=read_features(["GenericWorkload=true"], ["scheduling.k8s.io/v1alpha2=true"])
)


class _Run(NamedTuple):
    """A scheduler in a cluster of one node, and the paths of all requests for pod groups."""

    api: ApiClient
    cluster: Cluster
    asked: list[str]


@asynccontextmanager
async def _running(options: ClusterOptions, folder: Path, gates: str = "") -> AsyncIterator[_Run]:
    asked: list[str] = []

    def audit(_user: User, attributes: Attributes, _decision: Decision) -> None:
        if any(group in attributes.path for group in (CORE, COSCHEDULING)):
            asked.append(attributes.path)

    async with (
        SimulatedCluster(options=options) as simulated,
        ApiClient(simulated.url, TOKEN) as api,
    ):
        simulated.server.access.audit = audit
        kubeconfig = simulated.write_kubeconfig(folder / "kubeconfig")
        cluster = Cluster(api)
        await cluster.add_node("n")
        changes: Json = {"feature_gates": parse_feature_gates([gates])} if gates else {}
        async with running_scheduler(kubeconfig, **changes):
            yield _Run(api, cluster, asked)


async def _create_core_group(api: ApiClient) -> None:
    spec = {"schedulingPolicy": {"gang": {"minCount": 2}}}
    body = {"metadata": {"name": "g"}, "spec": spec}
    await api.create(f"{CORE}/namespaces/default/podgroups", body)


async def test_a_label_without_a_definition_is_scheduled_and_honoured_once_it_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pod_groups, "RETRY_S", 0.05)
    async with _running(PLAIN, tmp_path) as run:
        await run.cluster.create("left-over", labels=LABELS)
        assert await run.cluster.node_of("left-over") == "n"
        await run.api.create(DEFINITIONS, DEFINITION)

        async def is_watched() -> bool:
            return f"{COSCHEDULING}/podgroups" in run.asked

        await wait_until(is_watched)
        path = f"{COSCHEDULING}/namespaces/default/podgroups"
        version, kind = COSCHEDULING.removeprefix("/apis/"), "PodGroup"
        body = {"apiVersion": version, "kind": kind, "metadata": {"name": "g"}}
        body["spec"] = {"minMember": 3}
        await run.api.create(path, body)
        await run.cluster.create("a", labels=LABELS)
        await run.cluster.create("bystander")
        assert await run.cluster.node_of("bystander") == "n"
        assert "nodeName" not in (await run.cluster.pod("a"))["spec"]
        await run.cluster.create("b", labels=LABELS)
        assert [await run.cluster.node_of(name) for name in ("a", "b")] == ["n", "n"]
        group = (await run.api.get(f"{path}/g")).body
    assert "status" not in group


async def test_a_server_without_pod_groups_gets_two_requests_at_the_start(tmp_path: Path) -> None:
    async with _running(PLAIN, tmp_path) as run:
        await run.cluster.create("p")
        await run.cluster.node_of("p")
        assert sorted(run.asked) == [CORE, COSCHEDULING]


async def test_the_gate_makes_members_ordinary_pods(tmp_path: Path) -> None:
    group = {"podGroupName": "g"}
    async with _running(SERVED, tmp_path) as run:
        await _create_core_group(run.api)
        await run.cluster.create("member", schedulingGroup=group)
        await run.cluster.create("ordinary")
        await run.cluster.node_of("ordinary")
        assert scheduled_condition(await run.cluster.pod("member"))[0] == ""
    async with _running(SERVED, tmp_path, "GenericWorkload=false") as run:
        await _create_core_group(run.api)
        await run.cluster.create("member", schedulingGroup=group)
        assert await run.cluster.node_of("member") == "n"
        assert [path for path in run.asked if "namespaces" not in path] == []
