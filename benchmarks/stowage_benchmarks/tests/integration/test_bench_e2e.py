"""The end-to-end benchmark, with scheduler processes and few pods."""

import json
from pathlib import Path
from typing import Any

import pytest

from simcluster import ClusterOptions, SimulatedCluster
from simcluster.features import read_features
from simcluster.harness.apply import create_all
from simcluster.tests.support.api_servers import ApiServerUnderTest
from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S
from stowage.operator.client.api_client import ApiClient
from stowage.operator.client.connection import connect
from stowage_benchmarks.e2e.cleaning import clean
from stowage_benchmarks.e2e.scenarios import SCENARIOS, Size, scenario_nodes
from stowage_benchmarks.tests.integration.bench_process import STOWAGE, bench

SIZE = Size(nodes=3, running=4, pods=2)
SMALL = ("--nodes=40", "--running=40", "--pods=80", "--timeout=300")


def results_of(*arguments: str) -> list[dict[str, Any]]:
    report = bench("e2e", *SMALL, *arguments, timeout_s=3 * WAIT_TIMEOUT_S)
    assert report["calibration_ms"] > 0
    results: list[dict[str, Any]] = report["results"]
    for result in results:
        assert result["bound"] == result["pods"]
        assert result["problems"] == []
    return results


@pytest.mark.parametrize("workload", ["mixed", "churn", "gangs"])
def test_every_pod_is_bound_once(workload: str) -> None:
    (result,) = results_of(f"--workload={workload}")
    assert result["scheduler"] == "stowage"
    # A delayed watcher may see all bindings at one instant.
    assert result["binds_per_s"] is None or result["binds_per_s"] > 0
    assert result["cpu_ms_per_pod"] > result["cpu_ms_per_pod_after_first_bind"] >= 0
    assert result["rss_mib"] > 0


def test_another_scheduler_can_be_measured_for_comparison() -> None:
    other = [*STOWAGE, "run", "--kubeconfig={kubeconfig}", "--scheduler-name=stowage"]
    ours, theirs = results_of(
        "--workload=basic", "--", *other, "--leader-elect=false", "--secure-port=0"
    )
    assert (ours["scheduler"], theirs["scheduler"]) == ("stowage", "python")
    assert theirs["cpu_ms_per_pod"] > 0


def test_the_anti_affinity_workload_has_no_more_pods_than_nodes() -> None:
    (result,) = results_of("--workload=anti-affinity")
    assert result["pods"] == result["nodes_used"] == 40


async def test_the_groups_of_gangs_are_deleted_after_the_benchmark(tmp_path: Path) -> None:
    gates = read_features(["GenericWorkload=true"], ["scheduling.k8s.io/v1alpha2=true"])
    options = ClusterOptions(with_kubelet=False, with_controllers=False, gates=gates)
    async with SimulatedCluster(options=options) as cluster:
        connection = await connect(str(cluster.write_kubeconfig(tmp_path / "kubeconfig")))
        try:
            client = ApiClient(connection)
            await create_all(client, SCENARIOS["gangs"].setting(Size(3, 0, 16), "s"))
            path = "/apis/scheduling.k8s.io/v1alpha2/podgroups"
            assert len(json.loads(await client.get(path))["items"]) == 2
            await clean(client)
            assert json.loads(await client.get(path))["items"] == []
        finally:
            await connection.close()


async def test_an_existing_server_has_no_new_objects_after_the_benchmark(
    api_server: ApiServerUnderTest,
) -> None:
    connection = await connect(str(api_server.kubeconfig))
    try:
        client = ApiClient(connection)
        await create_all(client, [*scenario_nodes(SIZE), *SCENARIOS["basic"].setting(SIZE, "s")])
        await clean(client)
        for path in ("/api/v1/nodes", "/api/v1/namespaces/default/pods"):
            names = [
                each["metadata"]["name"] for each in json.loads(await client.get(path))["items"]
            ]
            assert not [name for name in names if name.startswith(("node-0", "init-"))]
    finally:
        await connection.close()
