"""Questions about clusters that serve pod groups, and about those that do not."""

from __future__ import annotations

from pathlib import Path

from simcluster import ClusterOptions, SimulatedCluster, sample_nodes
from simcluster.features import read_features
from simcluster.tests.support.api_client import PODS, ApiClient, pod
from stowage.analysis.explain_pod import explain_pod
from stowage.analysis.explained_decision import SCHEDULED
from stowage.analysis.loaded_cluster import load_cluster
from stowage.analysis.what_if import Question, what_if
from stowage.api.config.loading import load_configuration
from stowage.api.objects.pod_groups import COSCHEDULING_LABEL
from stowage.cli.profiles import make_frameworks
from stowage.operator.client.cluster_lists import read_cluster

GROUPS = "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups"
GATES = read_features(["GenericWorkload=true"], ["scheduling.k8s.io/v1alpha2=true"])


async def _num_placed(folder: Path, num_members: int) -> int:
    """How many of the members of a gang of two would be placed."""
    options = ClusterOptions(with_kubelet=False, with_controllers=False, gates=GATES)
    async with (
        SimulatedCluster(sample_nodes(3), options) as cluster,
        ApiClient(cluster.url, "") as api,
    ):
        spec = {"schedulingPolicy": {"gang": {"minCount": 2}}}
        await api.create(GROUPS, {"metadata": {"name": "g"}, "spec": spec})
        for index in range(num_members):
            await api.create(PODS, pod(f"p{index}", schedulingGroup={"podGroupName": "g"}))
        kubeconfig = cluster.write_kubeconfig(folder / "kubeconfig")
        objects, notes = await read_cluster(str(kubeconfig))
    assert notes == []
    loaded = load_cluster(objects, make_frameworks(load_configuration()))
    return len(what_if(loaded, Question()).placed)


async def test_a_gang_is_placed_as_a_whole_in_memory(tmp_path: Path) -> None:
    assert await _num_placed(tmp_path, 1) == 0
    assert await _num_placed(tmp_path, 2) == 2


async def test_where_groups_are_not_served_a_pod_that_names_one_is_an_ordinary_pod(
    tmp_path: Path,
) -> None:
    options = ClusterOptions(with_kubelet=False, with_controllers=False)
    async with (
        SimulatedCluster(sample_nodes(3), options) as cluster,
        ApiClient(cluster.url, "") as api,
    ):
        named = pod("p")
        named["metadata"]["labels"] = {COSCHEDULING_LABEL: "g"}
        await api.create(PODS, named)
        kubeconfig = cluster.write_kubeconfig(tmp_path / "kubeconfig")
        objects, notes = await read_cluster(str(kubeconfig))
    assert notes == []
    assert "PodGroup" not in objects.counts()
    loaded = load_cluster(objects, make_frameworks(load_configuration()))
    explanation = explain_pod(loaded, "default/p")
    assert (explanation.decision.outcome, explanation.group) == (SCHEDULED, None)
    answer = what_if(loaded, Question())
    assert [each.pod for each in answer.placed] == ["default/p"]
    assert answer.groups == ()
