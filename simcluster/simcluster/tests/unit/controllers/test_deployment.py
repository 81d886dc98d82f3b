"""Deployments: rollouts, rollbacks, pauses, scaling and status."""

from typing import Any

from simcluster.kinds.resources import DEPLOYMENTS, PODS, REPLICA_SETS
from simcluster.tests.support.manual_cluster import ManualCluster, template, workload

Json = dict[str, Any]


def image(name: str) -> Any:
    def act(obj: Json) -> None:
        obj["spec"]["template"]["spec"]["containers"][0]["image"] = name

    return act


def condition(cluster: ManualCluster, kind: str) -> Json:
    conditions = cluster.get(DEPLOYMENTS, "web")["status"]["conditions"]
    found: Json = next(found for found in conditions if found["type"] == kind)
    return found


def sizes(cluster: ManualCluster) -> list[int]:
    """Replicas of the ReplicaSets, by revision."""
    sets = cluster.all(REPLICA_SETS)
    by_revision = sorted(sets, key=revision)
    return [found["spec"]["replicas"] for found in by_revision]


def revision(obj: Json) -> int:
    return int(obj["metadata"]["annotations"]["deployment.kubernetes.io/revision"])


def test_a_deployment_becomes_available() -> None:
    cluster = ManualCluster()
    cluster.create(DEPLOYMENTS, workload())
    cluster.settle()
    status = cluster.get(DEPLOYMENTS, "web")["status"]
    assert (status["replicas"], status["updatedReplicas"], status["availableReplicas"]) == (3, 3, 3)
    assert status["observedGeneration"] == 1
    assert condition(cluster, "Available")["status"] == "True"
    assert condition(cluster, "Progressing")["reason"] == "NewReplicaSetAvailable"


def test_a_new_template_gets_a_new_replica_set_and_the_old_one_is_scaled_down() -> None:
    cluster = ManualCluster()
    cluster.create(DEPLOYMENTS, workload())
    cluster.settle()
    cluster.change(DEPLOYMENTS, "web", image("web:2"))
    assert sizes(cluster) == [0, 3]
    assert {pod["spec"]["containers"][0]["image"] for pod in cluster.all(PODS)} == {"web:2"}


def test_an_earlier_template_reuses_its_replica_set_with_a_new_revision() -> None:
    cluster = ManualCluster()
    cluster.create(DEPLOYMENTS, workload())
    cluster.settle()
    for name in ("web:2", "web:1"):
        cluster.change(DEPLOYMENTS, "web", image(name))
    assert len(cluster.all(REPLICA_SETS)) == 2
    newest = max(cluster.all(REPLICA_SETS), key=revision)
    annotations = newest["metadata"]["annotations"]
    assert revision(newest) == revision(cluster.get(DEPLOYMENTS, "web")) == 3
    assert annotations["deployment.kubernetes.io/revision-history"] == "1"
    assert newest["spec"]["template"]["spec"]["containers"][0]["image"] == "web:1"


def test_each_revision_keeps_its_change_cause() -> None:
    cluster = ManualCluster()
    cluster.create(DEPLOYMENTS, workload())
    cluster.settle()

    def act(obj: Json) -> None:
        obj["metadata"].setdefault("annotations", {})["kubernetes.io/change-cause"] = "newer"
        image("web:2")(obj)

    cluster.change(DEPLOYMENTS, "web", act)
    newest = max(cluster.all(REPLICA_SETS), key=revision)
    assert newest["metadata"]["annotations"]["kubernetes.io/change-cause"] == "newer"


def test_the_revision_history_limit_bounds_old_replica_sets() -> None:
    cluster = ManualCluster()
    cluster.create(DEPLOYMENTS, workload(revisionHistoryLimit=1))
    cluster.settle()
    for number in range(2, 6):
        cluster.change(DEPLOYMENTS, "web", image(f"web:{number}"))
    assert sorted(map(revision, cluster.all(REPLICA_SETS))) == [4, 5]


def test_a_rollout_respects_surge_and_unavailability_when_pods_do_not_start() -> None:
    cluster = ManualCluster()
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    cluster.create(DEPLOYMENTS, workload(replicas=4, strategy=rolling))
    cluster.settle()
    stuck = template("web:2", volumes=[{"name": "v", "emptyDir": {}}])
    cluster.change(DEPLOYMENTS, "web", lambda obj: obj["spec"].update(template=stuck))
    assert sizes(cluster) == [4, 1]
    assert cluster.get(DEPLOYMENTS, "web")["status"]["availableReplicas"] == 4


def test_a_rollout_without_progress_fails_after_its_deadline() -> None:
    cluster = ManualCluster(binds=False)
    cluster.create(DEPLOYMENTS, workload(progressDeadlineSeconds=60))
    cluster.settle()
    cluster.pass_time(59)
    assert condition(cluster, "Progressing")["status"] == "True"
    cluster.pass_time(2)
    assert condition(cluster, "Progressing")["reason"] == "ProgressDeadlineExceeded"
    assert condition(cluster, "Progressing")["status"] == "False"


def test_a_paused_deployment_can_be_scaled_but_not_rolled_out() -> None:
    cluster = ManualCluster()
    cluster.create(DEPLOYMENTS, workload())
    cluster.settle()
    cluster.change(DEPLOYMENTS, "web", lambda obj: obj["spec"].update(paused=True))
    cluster.change(DEPLOYMENTS, "web", image("web:2"))
    assert sizes(cluster) == [3]
    cluster.change(DEPLOYMENTS, "web", lambda obj: obj["spec"].update(replicas=5))
    assert sizes(cluster) == [5]
    cluster.change(DEPLOYMENTS, "web", lambda obj: obj["spec"].pop("paused"))
    assert sizes(cluster) == [0, 5]


def test_scaling_during_a_rollout_is_proportional() -> None:
    cluster = ManualCluster()
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 2, "maxUnavailable": 2}}
    cluster.create(DEPLOYMENTS, workload(replicas=8, strategy=rolling))
    cluster.settle()
    stuck = template("web:2", volumes=[{"name": "v", "emptyDir": {}}])
    cluster.change(DEPLOYMENTS, "web", lambda obj: obj["spec"].update(template=stuck))
    assert sizes(cluster) == [6, 4]
    cluster.change(DEPLOYMENTS, "web", lambda obj: obj["spec"].update(replicas=18))
    assert sum(sizes(cluster)) == 20
    assert sizes(cluster)[0] > 6
    assert sizes(cluster)[1] > 4


def test_recreate_creates_no_new_pod_before_the_last_old_one_is_deleted() -> None:
    cluster = ManualCluster()
    spec = workload(strategy={"type": "Recreate"})
    spec["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 30
    cluster.create(DEPLOYMENTS, spec)
    cluster.settle()
    images: list[set[str]] = []

    def note(_change: Any) -> None:
        pods = cluster.all(PODS)
        images.append({pod["spec"]["containers"][0]["image"] for pod in pods})

    cluster.store.subscribe(PODS.stored_in, note)
    cluster.change(DEPLOYMENTS, "web", image("web:2"))
    cluster.pass_time(1)
    assert {"web:1", "web:2"} not in images
    assert images[-1] == {"web:2"}


def test_orphaned_replica_sets_are_adopted() -> None:
    cluster = ManualCluster()
    cluster.create(DEPLOYMENTS, workload())
    cluster.settle()
    cluster.delete(DEPLOYMENTS, "web", "Orphan")
    before = cluster.names(PODS)
    cluster.create(DEPLOYMENTS, workload())
    cluster.settle()
    assert len(cluster.all(REPLICA_SETS)) == 1
    assert cluster.names(PODS) == before
