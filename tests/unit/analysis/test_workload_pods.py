"""Manifests become the pods that controllers make, with what admission adds."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from stowage.analysis.cluster_objects import ClusterObjects
from stowage.analysis.workload_pods import InvalidManifest, objects_of_manifests
from stowage.api.objects.meta import ObjectMeta
from stowage.api.objects.node import Taint
from stowage.api.objects.pod import Pod
from stowage.api.objects.policy import PriorityClass
from stowage.api.objects.volume import PersistentVolumeClaim
from stowage.api.objects.workloads import ReplicaSet
from tests.support.builders import make_node

TEMPLATE = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": "1"}}}]},
}


def workload(kind: str, **spec: Any) -> dict[str, Any]:
    labels = {"app": "web"}
    selector = labels if kind == "ReplicationController" else {"matchLabels": labels}
    body = {"selector": selector, "template": TEMPLATE, **spec}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "web"}, "spec": body}


def expand(*items: dict[str, Any], cluster: ClusterObjects | None = None) -> ClusterObjects:
    return objects_of_manifests(items, cluster or ClusterObjects())


def pod_names(objects: ClusterObjects) -> list[str]:
    return [pod.metadata.namespaced_name for pod in objects.pods()]


def test_a_deployment_makes_its_replica_set_and_its_pods() -> None:
    made = expand(workload("Deployment", replicas=2))
    assert pod_names(made) == ["default/web-0", "default/web-1"]
    assert [each.metadata.name for each in made.of_kind(ReplicaSet)] == ["web"]
    pod = made.pods()[0]
    assert pod.metadata.labels == {"app": "web"}
    (owner,) = pod.metadata.owner_references
    assert (owner.kind, owner.name, owner.controller) == ("ReplicaSet", "web", True)


@pytest.mark.parametrize(
    ("kind", "spec", "number"),
    [
        ("Deployment", {}, 1),
        ("ReplicaSet", {"replicas": 3}, 3),
        ("ReplicationController", {"replicas": 0}, 0),
        ("Job", {"parallelism": 4}, 4),
        ("Job", {"parallelism": 4, "completions": 2}, 2),
    ],
)
def test_each_workload_makes_its_number_of_pods(
    kind: str, spec: dict[str, int], number: int
) -> None:
    assert len(expand(workload(kind, **spec)).pods()) == number


def test_a_cron_job_makes_the_pods_of_one_job() -> None:
    cron = workload("CronJob", jobTemplate={"spec": {"template": TEMPLATE}})
    assert pod_names(expand(cron)) == ["default/web-0"]


def test_a_stateful_set_makes_its_claims() -> None:
    claims = [{"metadata": {"name": "data"}, "spec": {"storageClassName": "fast"}}]
    made = expand(workload("StatefulSet", replicas=2, volumeClaimTemplates=claims))
    assert [each.metadata.name for each in made.of_kind(PersistentVolumeClaim)] == [
        "data-web-0",
        "data-web-1",
    ]
    volume = made.pods()[1].spec.volumes[0].persistent_volume_claim
    assert volume is not None
    assert volume.claim_name == "data-web-1"


def test_a_daemon_set_makes_a_pod_for_each_node() -> None:
    cluster = ClusterObjects()
    cluster.add(make_node("a"))
    cluster.add(make_node("b"))
    made = expand(workload("DaemonSet"), cluster=cluster)
    assert pod_names(made) == ["default/web-a", "default/web-b"]
    affinity = made.pods()[0].spec.affinity
    assert affinity is not None
    assert affinity.node_affinity is not None
    required = affinity.node_affinity.required_during_scheduling_ignored_during_execution
    assert required is not None
    assert required.node_selector_terms[0].match_fields[0].values == ("a",)


@pytest.mark.parametrize(
    ("spec", "names"),
    [
        ({}, ["plain", "cordoned"]),
        ({"hostNetwork": True}, ["plain", "cordoned", "offline"]),
        ({"nodeSelector": {"disk": "ssd"}}, ["cordoned"]),
        ({"tolerations": [{"operator": "Exists"}]}, ["plain", "cordoned", "offline", "db"]),
    ],
)
def test_a_daemon_set_makes_no_pod_for_a_node_that_it_does_not_select_or_tolerate(
    spec: dict[str, Any], names: list[str]
) -> None:
    offline = Taint(key="node.kubernetes.io/network-unavailable", effect="NoSchedule")
    cordoned = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
    cluster = ClusterObjects()
    for node in (
        make_node("plain"),
        make_node("cordoned", unschedulable=True, taints=[cordoned], labels={"disk": "ssd"}),
        make_node("offline", taints=[offline]),
        make_node("db", taints=[Taint(key="db", effect="NoSchedule")]),
    ):
        cluster.add(node)
    item = workload("DaemonSet", template={"spec": {"containers": [{"name": "c"}], **spec}})
    made = expand(item, cluster=cluster)
    assert pod_names(made) == [f"default/web-{name}" for name in names]


def test_a_daemon_set_makes_pods_only_for_the_nodes_that_its_affinity_names() -> None:
    cluster = ClusterObjects()
    for name in "abc":
        cluster.add(make_node(name))
    field = {"key": "metadata.name", "operator": "In", "values": ["b"]}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}, {}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    item = workload("DaemonSet", template={"spec": {"containers": [], "affinity": affinity}})
    assert pod_names(expand(item, cluster=cluster)) == ["default/web-b"]


def test_a_daemon_set_with_an_invalid_node_affinity_is_refused() -> None:
    terms = [{"matchExpressions": [{"key": "a", "operator": "Nope"}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    spec = {"containers": [], "affinity": {"nodeAffinity": required}}
    cluster = ClusterObjects()
    cluster.add(make_node("n"))
    expected = (
        r"DaemonSet web: spec\.template\.spec\.affinity\.nodeAffinity: "
        r"nodeSelectorTerms\[0\]\.matchExpressions\[0\]\.operator: "
    )
    with pytest.raises(InvalidManifest, match=expected):
        expand(workload("DaemonSet", template={"spec": spec}), cluster=cluster)


@pytest.mark.parametrize("kind", ["Pod", "Deployment", "StatefulSet"])
@pytest.mark.parametrize(
    ("meta", "field"),
    [
        ({"name": "web", "namespace": 5}, "namespace"),
        ({"name": "web", "namespace": ["shop"]}, "namespace"),
        ({"name": 5}, "name"),
        ({"generateName": ["web"]}, "name"),
    ],
)
def test_a_name_or_namespace_that_is_no_text_is_refused(
    kind: str, meta: dict[str, Any], field: str
) -> None:
    spec = TEMPLATE["spec"] if kind == "Pod" else {"template": TEMPLATE}
    with pytest.raises(InvalidManifest, match=rf"metadata\.{field}: "):
        expand({"kind": kind, "metadata": meta, "spec": spec})


def admitted(**spec: Any) -> Pod:
    low = PriorityClass(ObjectMeta(name="low"), 5, global_default=True)
    high = PriorityClass(ObjectMeta(name="high"), 50, preemption_policy="Never")
    cluster = ClusterObjects()
    cluster.add(low)
    cluster.add(high)
    item = {"kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [], **spec}}
    return expand(item, cluster=cluster).pods()[0]


def test_a_pod_gets_the_priority_of_its_class_or_the_default_one() -> None:
    assert admitted().spec.priority == 5
    named = admitted(priorityClassName="high").spec
    assert (named.priority, named.preemption_policy) == (50, "Never")
    with pytest.raises(InvalidManifest, match=r"Pod p: spec\.priorityClassName: none"):
        admitted(priorityClassName="none")


def test_the_priority_classes_of_every_cluster_are_known() -> None:
    assert admitted(priorityClassName="system-cluster-critical").spec.priority == 2_000_000_000
    assert admitted(priorityClassName="system-node-critical").spec.priority == 2_000_001_000


def test_a_pod_tolerates_unready_nodes_for_a_while() -> None:
    keys = [each.key for each in admitted().spec.tolerations]
    assert keys == ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"]
    everything = [{"operator": "Exists"}]
    assert len(admitted(tolerations=everything).spec.tolerations) == 1


def test_a_limit_is_a_request_unless_there_is_one() -> None:
    resources = {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}}
    pod = admitted(containers=[{"name": "c", "resources": resources}])
    assert pod.spec.containers[0].resources.requests == {"cpu": "1", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("kind: Pod", "Pod: metadata.name: expected a name"),
        ("{kind: Pod, metadata: {name: p}}", "Pod p: spec: expected an object"),
        (
            "{kind: Deployment, metadata: {name: d}, spec: {template: {}}}",
            "Deployment d: spec.template.spec: expected an object",
        ),
        (
            "{kind: Job, metadata: {name: j}, spec: {parallelism: two, template: {spec: {}}}}",
            "Job j: spec.parallelism: 'two' (expected 0 or more)",
        ),
        (
            "{kind: Pod, metadata: {name: p}, spec: {containers: [], hostNetwork: 7}}",
            "hostNetwork",
        ),
        (
            "{kind: Pod, metadata: {name: p}, spec: {overhead: {cpu: x}}}",
            'Pod default/p: spec.overhead[cpu]: "x" is not valid',
        ),
    ],
)
def test_a_mistake_is_named_by_object_and_field(text: str, complaint: str) -> None:
    with pytest.raises(InvalidManifest) as error:
        expand(yaml.safe_load(text))
    assert complaint in str(error.value)


def test_pods_with_one_name_in_two_namespaces_have_uids_of_their_own() -> None:
    items = [
        {"kind": "Pod", "metadata": {"name": "web", "namespace": namespace}, "spec": {}}
        for namespace in ("a", "b")
    ]
    made = objects_of_manifests(items, ClusterObjects())
    assert len({pod.metadata.uid for pod in made.pods()}) == 2


def test_objects_without_a_namespace_get_none() -> None:
    node = {"kind": "CSINode", "metadata": {"name": "n"}, "spec": {"drivers": []}}
    made = objects_of_manifests([node], ClusterObjects())
    assert list(made.by_kind["CSINode"]) == ["n"]
