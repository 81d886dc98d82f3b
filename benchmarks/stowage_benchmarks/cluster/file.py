"""Writes a file with a whole cluster for ``stowage cluster --from``."""

from __future__ import annotations

from pathlib import Path

from simcluster.kubelet.nodes import bench_node
from stowage_benchmarks.workloads import running_pod

_NUM_OWNERS = 350
"""A multiple of the numbers of kinds and of labels, so that the pods of one owner are alike."""


async def write_cluster_file(
    path: Path, num_nodes: int, num_pods: int, scheduler_name: str, *, with_owners: bool = False
) -> None:
    """Write nodes and the pods that run on them, each with the fields that an API server adds.

    Args:
        path: The file.
        num_nodes: Number of nodes.
        num_pods: Number of pods.
        scheduler_name: The ``schedulerName`` of the pods.
        with_owners: Whether each pod has a ReplicaSet as its controller.
    """
    from simcluster import PODS, ClusterOptions, SimulatedCluster  # noqa: PLC0415 - slow

    options = ClusterOptions(with_kubelet=False, with_controllers=False)
    nodes = [bench_node(index) for index in range(num_nodes)]
    async with SimulatedCluster(nodes, options) as cluster:
        for index in range(num_pods):
            pod = running_pod("mixed", index, num_nodes, scheduler_name)
            if with_owners:
                pod["metadata"]["ownerReferences"] = [_owner(index % _NUM_OWNERS)]
            cluster.registry.create(PODS, "default", pod)
        await cluster.save(path)


def _owner(index: int) -> dict[str, object]:
    name = f"replica-set-{index:03d}"
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": name,
        "uid": name,
        "controller": True,
    }
