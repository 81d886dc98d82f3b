"""Writes a file with a whole cluster for ``stowage cluster --from``."""

from __future__ import annotations

from pathlib import Path

from simcluster.kubelet.nodes import bench_node
from stowage_benchmarks.workloads import running_pod


async def write_cluster_file(
    path: Path, num_nodes: int, num_pods: int, scheduler_name: str
) -> None:
    """Write nodes and the pods that run on them, each with the fields that an API server adds."""
    from simcluster import PODS, ClusterOptions, SimulatedCluster  # noqa: PLC0415 - slow

    options = ClusterOptions(with_kubelet=False, with_controllers=False)
    nodes = [bench_node(index) for index in range(num_nodes)]
    async with SimulatedCluster(nodes, options) as cluster:
        for index in range(num_pods):
            pod = running_pod("mixed", index, num_nodes, scheduler_name)
            cluster.registry.create(PODS, "default", pod)
        await cluster.save(path)
