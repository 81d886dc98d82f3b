"""Creating, changing and deleting objects by the API server's rules."""

from typing import Any

import pytest

from simcluster.apiserver.errors import ApiError
from simcluster.clock import Clock, parse_timestamp
from simcluster.kinds.defaults.pods import qos_class
from simcluster.kinds.resources import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    JOBS,
    LIMIT_RANGES,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    STORAGE_CLASSES,
)
from simcluster.kubelet.nodes import bench_node, sample_nodes
from simcluster.store.deletion import DeleteOptions, options_of_query, parse_delete_options
from simcluster.store.registry import Registry, WriteOptions, editable
from simcluster.store.store import Store

Json = dict[str, Any]

NOW = parse_timestamp("2026-01-01T00:00:00Z")


@pytest.fixture
def registry() -> Registry:
    """An empty registry at a fixed time, with a namespace."""
    registry = Registry(Store(), Clock(lambda: NOW))
    registry.create(NAMESPACES, "", {"metadata": {"name": "default"}})
    return registry


def pod(name: str = "a", **spec: Any) -> Json:
    return {
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "x"}], **spec},
    }


def refusal(act: Any) -> ApiError:
    with pytest.raises(ApiError) as caught:
        act()
    return caught.value


def test_defaults_are_set_in_a_pod(registry: Registry) -> None:
    created = registry.create(PODS, "default", pod()).obj
    assert created["metadata"]["creationTimestamp"] == "2026-01-01T00:00:00Z"
    assert created["metadata"]["namespace"] == "default"
    assert created["spec"]["restartPolicy"] == "Always"
    assert created["spec"]["containers"][0]["imagePullPolicy"] == "Always"
    assert created["status"]["phase"] == "Pending"


def test_match_label_keys_become_requirements(registry: Registry) -> None:
    constraint = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "a"}},
        "matchLabelKeys": ["hash", "absent"],
    }
    body = pod(topologySpreadConstraints=[constraint])
    body["metadata"]["labels"] = {"hash": "1"}
    created = registry.create(PODS, "default", body).obj
    selector = created["spec"]["topologySpreadConstraints"][0]["labelSelector"]
    assert selector["matchExpressions"] == [{"key": "hash", "operator": "In", "values": ["1"]}]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"metadata": {"name": "A_b"}, "spec": {}}, 'metadata.name: Invalid value: "A_b"'),
        (pod(restartPolicy="Sometimes"), 'spec.restartPolicy: Unsupported value: "Sometimes"'),
        (pod(containers=[{"image": "x"}]), "spec.containers[0].name: Required value"),
        ({"metadata": {"name": "a"}}, "spec.containers: Required value"),
    ],
)
def test_the_error_for_an_invalid_pod_names_the_field(
    registry: Registry, body: Json, message: str
) -> None:
    error = refusal(lambda: registry.create(PODS, "default", body))
    assert error.code == 422
    assert message in error.message


def test_a_malformed_quantity_is_refused(registry: Registry) -> None:
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "lots"}}}
    error = refusal(lambda: registry.create(PODS, "default", pod(containers=[container])))
    assert (error.code, "requests.cpu: quantity 'lots'" in error.message) == (400, True)


def test_the_namespace_must_exist_and_match_the_body(registry: Registry) -> None:
    assert refusal(lambda: registry.create(PODS, "nowhere", pod())).code == 404
    elsewhere = pod()
    elsewhere["metadata"]["namespace"] = "other"
    assert refusal(lambda: registry.create(PODS, "default", elsewhere)).code == 400


def test_generation_counts_changes_of_the_spec(registry: Registry) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod()["spec"]}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    current = registry.create(DEPLOYMENTS, "default", {"metadata": {"name": "d"}, "spec": spec})
    labelled = editable(current)
    labelled["metadata"]["labels"] = {"x": "y"}
    current = registry.replace(DEPLOYMENTS, current, labelled)
    assert current.obj["metadata"]["generation"] == 1
    scaled = editable(current)
    scaled["spec"]["replicas"] = 5
    current = registry.replace(DEPLOYMENTS, current, scaled)
    assert current.obj["metadata"]["generation"] == 2
    other = editable(current)
    other["spec"]["selector"] = {"matchLabels": {"c": "d"}}
    assert refusal(lambda: registry.replace(DEPLOYMENTS, current, other)).code == 422


def test_the_template_of_a_job_is_labelled_with_its_uid(registry: Registry) -> None:
    template = {"spec": {**pod()["spec"], "restartPolicy": "Never"}}
    body = {"metadata": {"name": "j"}, "spec": {"template": template}}
    job = registry.create(JOBS, "default", body).obj
    uid = job["metadata"]["uid"]
    assert job["spec"]["selector"]["matchLabels"]["batch.kubernetes.io/controller-uid"] == uid
    labels = job["spec"]["template"]["metadata"]["labels"]
    assert (labels["batch.kubernetes.io/job-name"], labels["controller-uid"]) == ("j", uid)


def test_a_claim_gets_the_default_class(registry: Registry) -> None:
    annotations = {"storageclass.kubernetes.io/is-default-class": "true"}
    storage_class = {"metadata": {"name": "fast", "annotations": annotations}, "provisioner": "p"}
    registry.create(STORAGE_CLASSES, "", storage_class)
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    wanted = {"metadata": {"name": "c"}, "spec": spec}
    claim = registry.create(PERSISTENT_VOLUME_CLAIMS, "default", wanted)
    assert claim.obj["spec"]["storageClassName"] == "fast"


def test_a_new_node_is_created_with_a_not_ready_taint(registry: Registry) -> None:
    created = registry.create(NODES, "", {"metadata": {"name": "n"}}).obj
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    assert created["spec"]["taints"] == [taint]
    untouched = Registry(registry.store, registry.clock, taint_new_nodes=False)
    assert "taints" not in untouched.create(NODES, "", {"metadata": {"name": "m"}}).obj["spec"]


def test_a_dry_run_stores_nothing(registry: Registry) -> None:
    registry.create(CONFIG_MAPS, "default", {"metadata": {"name": "a"}}, WriteOptions(dry_run=True))
    assert refusal(lambda: registry.get(CONFIG_MAPS, "default", "a")).code == 404


def test_a_deletion_with_a_failed_precondition_is_refused(registry: Registry) -> None:
    created = registry.create(CONFIG_MAPS, "default", {"metadata": {"name": "a"}})
    for options in (DeleteOptions(uid="other"), DeleteOptions(resource_version="1")):
        error = refusal(lambda o=options: registry.delete(CONFIG_MAPS, "default", "a", o))
        assert error.code == 409
    uid = created.obj["metadata"]["uid"]
    _, is_gone = registry.delete(CONFIG_MAPS, "default", "a", DeleteOptions(uid=uid))
    assert is_gone


def test_a_deleted_bound_pod_stays_for_its_grace_period(registry: Registry) -> None:
    registry.create(PODS, "default", pod(nodeName="n"))
    waiting, is_gone = registry.delete(PODS, "default", "a", DeleteOptions(grace_period_s=10))
    assert not is_gone
    assert waiting.obj["metadata"]["deletionTimestamp"] == "2026-01-01T00:00:10Z"
    assert waiting.obj["metadata"]["generation"] == 2


def test_delete_options_are_read_from_the_body_or_the_query() -> None:
    assert parse_delete_options({"gracePeriodSeconds": 3}).grace_period_s == 3
    query = {"gracePeriodSeconds": "5", "propagationPolicy": "Orphan"}
    assert parse_delete_options(options_of_query(query)) == DeleteOptions(5, "Orphan")
    assert parse_delete_options({"orphanDependents": True}).propagation_policy == "Orphan"
    assert refusal(lambda: options_of_query({"gracePeriodSeconds": "soon"})).code == 400


@pytest.mark.parametrize(
    ("resources", "quality"),
    [
        ({}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}},
         "Guaranteed"),
        ({"limits": {"nvidia.com/gpu": "1"}}, "BestEffort"),
    ],
)  # fmt: skip
def test_pods_get_their_quality_of_service_class(resources: Json, quality: str) -> None:
    assert qos_class({"containers": [{"resources": resources}]}) == quality


def test_demo_nodes_differ_in_size_and_benchmark_nodes_do_not(registry: Registry) -> None:
    nodes = sample_nodes(100)
    zones = {node["metadata"]["labels"]["topology.kubernetes.io/zone"] for node in nodes}
    sizes = {node["status"]["capacity"]["cpu"] for node in nodes}
    tainted = [node for node in nodes if node["spec"].get("taints")]
    assert (len(zones), len(sizes), len(tainted)) == (3, 2, 10)
    equal = [bench_node(index) for index in range(20)]
    assert {node["status"]["allocatable"]["memory"] for node in equal} == {"32Gi"}
    assert len({node["metadata"]["labels"]["topology.kubernetes.io/zone"] for node in equal}) == 10
    for node in nodes:
        registry.create(NODES, "", node)


def test_a_claim_that_is_larger_than_later_limits_may_change_otherwise(registry: Registry) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "3Gi"}}}
    claim = {"metadata": {"name": "a"}, "spec": spec}
    stored = registry.create(PERSISTENT_VOLUME_CLAIMS, "default", claim)
    item = {"type": "PersistentVolumeClaim", "max": {"storage": "2Gi"}}
    limits = {"metadata": {"name": "limits"}, "spec": {"limits": [item]}}
    registry.create(LIMIT_RANGES, "default", limits)
    changed = editable(stored)
    changed["metadata"]["labels"] = {"app": "web"}
    assert registry.replace(PERSISTENT_VOLUME_CLAIMS, stored, changed).labels == {"app": "web"}
    other = {**claim, "metadata": {"name": "b"}}
    refused = refusal(lambda: registry.create(PERSISTENT_VOLUME_CLAIMS, "default", other))
    assert refused.code == 403
