"""DaemonSets: a pod on every matching node."""

import itertools
from typing import Any

from simcluster.kinds.resources import DAEMON_SETS, NODES, PODS
from simcluster.tests.support.manual_cluster import ManualCluster, template

Json = dict[str, Any]


def daemon(**spec: Any) -> Json:
    selector = {"matchLabels": {"app": "web"}}
    return {
        "metadata": {"name": "agent"},
        "spec": {"selector": selector, "template": template(), **spec},
    }


def nodes_of(cluster: ManualCluster) -> list[str]:
    return sorted(pod["spec"].get("nodeName", "") for pod in cluster.all(PODS))


def test_every_node_gets_a_pod_with_affinity_to_its_name() -> None:
    cluster = ManualCluster()
    cluster.create(DAEMON_SETS, daemon())
    cluster.settle()
    assert nodes_of(cluster) == ["node-0", "node-1", "node-2"]
    (pod, *_) = cluster.all(PODS)
    required = pod["spec"]["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]
    (term,) = required["nodeSelectorTerms"]
    assert term["matchFields"] == [
        {"key": "metadata.name", "operator": "In", "values": [pod["spec"]["nodeName"]]}
    ]
    keys = {toleration["key"] for toleration in pod["spec"]["tolerations"]}
    assert "node.kubernetes.io/unschedulable" in keys
    assert "node.kubernetes.io/disk-pressure" in keys
    status = cluster.get(DAEMON_SETS, "agent")["status"]
    assert (status["desiredNumberScheduled"], status["numberReady"]) == (3, 3)
    assert (status["updatedNumberScheduled"], status["numberAvailable"]) == (3, 3)


def test_a_new_node_gets_a_pod_and_the_pod_of_a_deleted_node_is_deleted() -> None:
    cluster = ManualCluster()
    cluster.create(DAEMON_SETS, daemon())
    cluster.settle()
    cluster.add_node("late")
    cluster.settle()
    assert "late" in nodes_of(cluster)
    cluster.delete(NODES, "node-0")
    assert nodes_of(cluster) == ["late", "node-1", "node-2"]
    assert cluster.get(DAEMON_SETS, "agent")["status"]["desiredNumberScheduled"] == 3


def test_only_selected_and_tolerated_nodes_get_a_pod() -> None:
    cluster = ManualCluster()
    taint = {"key": "dedicated", "value": "x", "effect": "NoSchedule"}
    cluster.change(NODES, "node-0", lambda node: node["spec"].update(taints=[taint]))
    zone = {"topology.kubernetes.io/zone": "a"}
    cluster.create(DAEMON_SETS, daemon(template=template(nodeSelector=zone)))
    cluster.settle()
    assert nodes_of(cluster) == ["node-2"]
    cluster.change(NODES, "node-0", lambda node: node["spec"].pop("taints"))
    assert nodes_of(cluster) == ["node-0", "node-2"]


def test_a_pod_is_deleted_when_its_node_no_longer_matches() -> None:
    cluster = ManualCluster()
    zone = {"topology.kubernetes.io/zone": "a"}
    cluster.create(DAEMON_SETS, daemon(template=template(nodeSelector=zone)))
    cluster.settle()
    cluster.change(NODES, "node-0", lambda node: node["metadata"]["labels"].update(zone))
    assert nodes_of(cluster) == ["node-0", "node-2"]
    label = "topology.kubernetes.io/zone"
    cluster.change(NODES, "node-0", lambda node: node["metadata"]["labels"].update({label: "b"}))
    assert nodes_of(cluster) == ["node-2"]


def test_an_update_replaces_a_few_at_a_time() -> None:
    cluster = ManualCluster(num_nodes=4)
    cluster.create(DAEMON_SETS, daemon())
    cluster.settle()
    fewest = [4]

    def note(_change: Any) -> None:
        living = [pod for pod in cluster.all(PODS) if pod["status"]["phase"] == "Running"]
        fewest.append(len(living))

    cluster.store.subscribe(PODS.stored_in, note)

    def act(obj: Json) -> None:
        obj["spec"]["template"]["spec"]["containers"][0]["image"] = "web:2"

    cluster.change(DAEMON_SETS, "agent", act)
    assert {pod["spec"]["containers"][0]["image"] for pod in cluster.all(PODS)} == {"web:2"}
    assert min(fewest) == 3
    assert cluster.get(DAEMON_SETS, "agent")["status"]["updatedNumberScheduled"] == 4


def test_a_failing_pod_is_recreated_with_backoff() -> None:
    cluster = ManualCluster(num_nodes=1)
    large = template()
    large["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "99"}}
    made: list[float] = []
    cluster.store.subscribe(
        PODS.stored_in,
        lambda change: made.append(cluster.time.now) if change.type == "ADDED" else None,
    )
    cluster.create(DAEMON_SETS, daemon(template=large))
    cluster.settle()
    cluster.pass_time(20)
    waits = [later - earlier for earlier, later in itertools.pairwise(made)]
    assert 3 <= len(made) <= 7
    assert waits == sorted(waits)
