"""What ``stowage what-if`` predicts is what then happens."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from simcluster.tests.support.api_client import ApiClient
from simcluster.tests.support.api_servers import ApiServerUnderTest
from stowage.analysis.loaded_cluster import load_cluster
from stowage.analysis.what_if import Question, what_if
from stowage.analysis.workload_pods import objects_of_manifests
from stowage.api.config.loading import load_configuration
from stowage.cli.profiles import make_frameworks
from stowage.operator.client.cluster_lists import read_cluster
from tests.integration.analysis.commands import run_stowage
from tests.integration.scheduling.cluster import Cluster
from tests.support.integration.running_scheduler import RunningScheduler, running_scheduler

Json = dict[str, Any]

NUM_NODES = 6
NUM_PODS = 25
PRIORITY_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
ZONE = "topology.kubernetes.io/zone"


@pytest.fixture
async def cluster(api: ApiClient) -> Cluster:
    """A cluster whose nodes differ in labels and taints."""
    cluster = Cluster(api)
    random = Random(5)
    for index in range(NUM_NODES):
        labels = {ZONE: random.choice("ab"), "disk": random.choice(("ssd", "hdd"))}
        taint = {"key": "slow", "value": "", "effect": "PreferNoSchedule"}
        taints = [taint] if random.random() < 0.3 else []
        await cluster.add_node(f"n{index}", labels, taints=taints)
    return cluster


@pytest.fixture
async def scheduler(
    api_server: ApiServerUnderTest, cluster: Cluster
) -> AsyncIterator[RunningScheduler]:
    """A running scheduler with the default profile."""
    async with running_scheduler(api_server.kubeconfig) as scheduler:
        yield scheduler


def random_spec(random: Random) -> Json:
    """Constraints that leave some nodes out and prefer others."""
    spec: Json = {}
    if random.random() < 0.4:
        spec["nodeSelector"] = {"disk": random.choice(("ssd", "hdd"))}
    if random.random() < 0.5:
        selector = {"matchLabels": {"app": random.choice("xy")}}
        anti = {"labelSelector": selector, "topologyKey": ZONE}
        spec["affinity"] = {
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": random.randint(1, 100), "podAffinityTerm": anti}
                ]
            }
        }
    return spec


async def predicted_node(api_server: ApiServerUnderTest, pod: Json) -> tuple[str, bool]:
    """The node that what-if predicts for a pod, and whether it is a tie; empty if none."""
    objects, _ = await read_cluster(str(api_server.kubeconfig))
    frameworks = make_frameworks(load_configuration())
    question = Question(objects=objects_of_manifests([pod], objects))
    answer = what_if(load_cluster(objects, frameworks), question)
    name = f"default/{pod['metadata']['name']}"
    for each in answer.placed:
        if each.pod == name:
            return each.node, each.tied
    return "", False


async def test_each_pod_goes_where_it_was_predicted_to_go(
    api_server: ApiServerUnderTest, scheduler: RunningScheduler, cluster: Cluster
) -> None:
    random = Random(7)
    certain = 0
    for index in range(NUM_PODS):
        cpu = f"{random.randint(1, 9) * 100 + index}m"
        labels, spec = {"app": random.choice("xy")}, random_spec(random)
        pod = cluster.new_pod(f"p{index}", cpu, labels, **spec)
        node, tied = await predicted_node(api_server, pod)
        await cluster.create(f"p{index}", cpu, labels, **spec)
        if not node:
            await cluster.refused(f"p{index}")
        elif not tied:
            assert await cluster.node_of(f"p{index}") == node
            certain += 1
        else:
            await cluster.node_of(f"p{index}")
    assert certain >= NUM_PODS / 2


async def test_the_cluster_is_not_touched(
    api_server: ApiServerUnderTest, api: ApiClient, cluster: Cluster, tmp_path: Path
) -> None:
    await cluster.create("lone")
    await api.create(PRIORITY_CLASSES, {"metadata": {"name": "shop"}, "value": 7})
    manifest = tmp_path / "web.yaml"
    pod = {"priorityClassName": "shop", "containers": [{"name": "c"}]}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": pod}
    spec = {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    web = {"kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}
    manifest.write_text(yaml.safe_dump(web))
    before = (await read_cluster(str(api_server.kubeconfig)))[0]
    flags = ("--kubeconfig", str(api_server.kubeconfig), "-f", str(manifest), "-o", "json")
    changes = ("--drain", "n0,n1", "--cordon", "n2", "--add-nodes", "2", "--like", "n3")
    done = await asyncio.to_thread(run_stowage, "what-if", *flags, *changes)
    assert (done.returncode, done.stderr) == (0, "")
    answer = json.loads(done.stdout)
    assert len(answer["placed"]) == 4
    assert answer["addedNodes"] == ["n3-new-1", "n3-new-2"]
    assert answer["after"]["nodes"] == NUM_NODES + 2
    assert (await read_cluster(str(api_server.kubeconfig)))[0] == before


def test_wrong_flags_are_refused(tmp_path: Path) -> None:
    empty = tmp_path / "empty.json"
    empty.write_text("[]")
    alone = run_stowage("what-if", "--from", str(empty), "--add-nodes", "2")
    assert alone.returncode == 2
    assert "--add-nodes and --like belong together" in alone.stderr
    unknown = run_stowage("what-if", "--from", str(empty), "--weights", "ImageLocalty=2")
    assert (unknown.returncode, unknown.stdout) == (1, "")
    assert "--weights" in unknown.stderr
    node = run_stowage("what-if", "--from", str(empty), "--drain", "gone")
    assert (node.returncode, node.stdout) == (1, "")
    assert "there is no node gone" in node.stderr
