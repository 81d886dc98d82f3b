"""Jobs: parallelism, retries, suspension, completion and deletion."""

from typing import Any

from simcluster.controllers.workloads.completion_indexes import format_indexes, parse_indexes
from simcluster.kinds.resources import JOBS, NODES, PODS
from simcluster.kubelet.kubelet import KubeletOptions
from simcluster.tests.support.manual_cluster import ManualCluster, template

Json = dict[str, Any]


def job(restart: str = "Never", **spec: Any) -> Json:
    pod = template(restartPolicy=restart)
    pod["metadata"] = {}
    return {"metadata": {"name": "batch"}, "spec": {"template": pod, **spec}}


def slow_cluster(num_nodes: int = 3) -> ManualCluster:
    return ManualCluster(num_nodes, kubelet=KubeletOptions(job_run_s=10))


def status(cluster: ManualCluster) -> Json:
    found: Json = cluster.get(JOBS, "batch")["status"]
    return found


def condition_types(cluster: ManualCluster) -> list[str]:
    return [found["type"] for found in status(cluster).get("conditions") or ()]


def failing(cluster: ManualCluster) -> None:
    """Make every pod fail from now on."""
    annotation = {"stowage/pod-failure-rate": "1"}
    for name in cluster.names(NODES):
        cluster.change(NODES, name, lambda node: node["metadata"].update(annotations=annotation))


def test_a_job_runs_parallelism_pods_until_its_completions_are_reached() -> None:
    cluster = slow_cluster()
    cluster.create(JOBS, job(completions=3, parallelism=2))
    cluster.settle()
    assert (status(cluster)["active"], status(cluster)["ready"]) == (2, 2)
    cluster.pass_time(10)
    assert (status(cluster)["succeeded"], status(cluster)["active"]) == (2, 1)
    cluster.pass_time(10)
    assert condition_types(cluster) == ["SuccessCriteriaMet", "Complete"]
    assert status(cluster)["succeeded"] == 3
    assert "completionTime" in status(cluster)


def test_finished_pods_are_counted_once_even_if_they_are_deleted() -> None:
    cluster = slow_cluster()
    cluster.create(JOBS, job(completions=2, parallelism=1))
    cluster.settle()
    (name,) = cluster.names(PODS)
    cluster.pass_time(10)
    assert "finalizers" not in cluster.get(PODS, name)["metadata"]
    cluster.delete(PODS, name)
    cluster.pass_time(10)
    assert status(cluster)["succeeded"] == 2
    assert "Complete" in condition_types(cluster)


def test_failures_are_retried_with_backoff_up_to_the_limit() -> None:
    cluster = slow_cluster()
    failing(cluster)
    cluster.create(JOBS, job(backoffLimit=2))
    cluster.settle()
    assert status(cluster)["failed"] == 1
    cluster.pass_time(9)
    assert status(cluster)["failed"] == 1
    cluster.pass_time(2)
    assert status(cluster)["failed"] == 2
    cluster.pass_time(21)
    assert status(cluster)["failed"] == 3
    assert condition_types(cluster) == ["FailureTarget", "Failed"]
    reason = status(cluster)["conditions"][-1]["reason"]
    assert reason == "BackoffLimitExceeded"


def test_a_job_fails_after_its_active_deadline() -> None:
    cluster = slow_cluster()
    cluster.create(JOBS, job(activeDeadlineSeconds=5))
    cluster.settle()
    cluster.pass_time(6)
    assert status(cluster)["conditions"][-1]["reason"] == "DeadlineExceeded"
    assert cluster.names(PODS) == []


def test_a_suspended_job_has_no_pods_until_it_is_resumed() -> None:
    cluster = slow_cluster()
    cluster.create(JOBS, job())
    cluster.settle()
    cluster.change(JOBS, "batch", lambda obj: obj["spec"].update(suspend=True))
    cluster.pass_time(1)
    assert cluster.names(PODS) == []
    assert "failed" not in status(cluster)
    assert "startTime" not in status(cluster)
    assert status(cluster)["conditions"][0]["reason"] == "JobSuspended"
    cluster.change(JOBS, "batch", lambda obj: obj["spec"].update(suspend=False))
    assert len(cluster.names(PODS)) == 1
    assert status(cluster)["conditions"][0]["status"] == "False"


def test_each_index_of_an_indexed_job_is_completed_once() -> None:
    cluster = slow_cluster()
    cluster.create(JOBS, job(completions=3, parallelism=2, completionMode="Indexed"))
    cluster.settle()
    indexes = [
        pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"]
        for pod in cluster.all(PODS)
    ]
    assert sorted(indexes) == ["0", "1"]
    assert cluster.all(PODS)[0]["spec"]["hostname"].startswith("batch-")
    cluster.pass_time(20)
    assert status(cluster)["completedIndexes"] == "0-2"
    assert "Complete" in condition_types(cluster)


def test_a_finished_job_is_deleted_after_its_time_to_live() -> None:
    cluster = slow_cluster()
    cluster.create(JOBS, job(ttlSecondsAfterFinished=30))
    cluster.settle()
    cluster.pass_time(39)
    assert cluster.names(JOBS) == ["batch"]
    cluster.pass_time(2)
    assert cluster.names(JOBS) == []
    assert cluster.names(PODS) == []


def test_pods_of_a_deleted_job_are_deleted() -> None:
    cluster = slow_cluster()
    cluster.create(JOBS, job())
    cluster.settle()
    cluster.delete(JOBS, "batch", "Background")
    cluster.pass_time(1)
    assert cluster.names(PODS) == []


def test_formatted_indexes_can_be_parsed() -> None:
    assert format_indexes([0, 2, 3, 4, 9]) == "0,2-4,9"
    assert parse_indexes("0,2-4,9") == {0, 2, 3, 4, 9}
    assert parse_indexes("") == set()
