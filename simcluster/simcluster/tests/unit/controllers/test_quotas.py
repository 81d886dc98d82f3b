"""The quota controller keeps the status of ResourceQuotas."""

from typing import Any

import pytest

from simcluster.apiserver.errors import ApiError
from simcluster.kinds.resources import CONFIG_MAPS, DEPLOYMENTS, PODS, REPLICA_SETS, RESOURCE_QUOTAS
from simcluster.store.deletion import DeleteOptions
from simcluster.tests.support.manual_cluster import ManualCluster, workload

Json = dict[str, Any]

ASKING = {"name": "c", "image": "x:1", "resources": {"requests": {"memory": "64Mi"}}}
HARD = {"configmaps": "5", "pods": "3", "requests.memory": "1Gi", "unknown": "1"}


def pod(name: str) -> Json:
    return {"metadata": {"name": name}, "spec": {"containers": [dict(ASKING)]}}


def limited(**hard: str) -> ManualCluster:
    cluster = ManualCluster(binds=False)
    quota = {"metadata": {"name": "q"}, "spec": {"hard": hard or HARD}}
    cluster.create(RESOURCE_QUOTAS, quota)
    cluster.settle()
    return cluster


def used(cluster: ManualCluster) -> Json:
    found: Json = cluster.get(RESOURCE_QUOTAS, "q")["status"]["used"]
    return found


def test_a_new_quota_gets_its_limits_and_what_is_used_already() -> None:
    cluster = ManualCluster()
    cluster.create(PODS, pod("a"))
    cluster.create(RESOURCE_QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": HARD}})
    cluster.settle()
    assert cluster.get(RESOURCE_QUOTAS, "q")["status"] == {
        "hard": HARD,
        "used": {"configmaps": "0", "pods": "1", "requests.memory": "64Mi"},
    }


def test_what_is_deleted_or_finished_is_free_again() -> None:
    cluster = limited()
    for name in ("a", "b", "c"):
        cluster.create(PODS, pod(name))
    cluster.create(CONFIG_MAPS, {"metadata": {"name": "m"}})
    cluster.settle()
    assert used(cluster) == {"configmaps": "1", "pods": "3", "requests.memory": "192Mi"}
    finished = {"phase": "Succeeded"}
    cluster.registry.change_status(PODS, "default", "a", lambda _pod: finished)
    cluster.registry.delete(PODS, "default", "b", DeleteOptions())
    cluster.registry.delete(CONFIG_MAPS, "default", "m", DeleteOptions())
    cluster.settle()
    assert used(cluster) == {"configmaps": "0", "pods": "1", "requests.memory": "64Mi"}


def test_a_replica_set_makes_no_more_pods_than_its_quota_admits() -> None:
    cluster = limited(pods="2")
    cluster.create(DEPLOYMENTS, workload(replicas=4))
    cluster.settle()
    assert used(cluster) == {"pods": "2"}
    [replica_set] = cluster.all(REPLICA_SETS)
    [failure] = replica_set["status"]["conditions"]
    assert (failure["type"], failure["reason"]) == ("ReplicaFailure", "FailedCreate")
    assert "exceeded quota: q, requested: pods=1, used: pods=2" in failure["message"]
    with pytest.raises(ApiError, match="exceeded quota: q, requested: pods=1"):
        cluster.create(PODS, pod("more"))
