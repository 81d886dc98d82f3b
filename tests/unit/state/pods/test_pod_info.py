"""Pods of a template share a class, which holds everything that scheduling reads."""

from __future__ import annotations

import gc
from typing import Any

import pytest
from msgspec.structs import replace

from stowage.api.decoding.errors import InvalidObject
from stowage.api.objects.meta import Condition
from stowage.api.objects.node import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from stowage.api.objects.pod import (
    Affinity,
    Container,
    ContainerPort,
    ContainerStatus,
    NodeAffinity,
    Pod,
    PodAffinity,
    PodSchedulingGroup,
    PodStatus,
    ResourceRequirements,
    TopologySpreadConstraint,
)
from stowage.api.objects.volume import (
    EphemeralVolumeSource,
    ImageVolumeSource,
    PersistentVolumeClaimVolumeSource,
    Volume,
)
from stowage.state import PodClass, PodClasses, make_pod_info
from tests.support.builders import HOSTNAME, affinity_term, label_selector, make_pod, owned_by

REPLICA_SET = owned_by("ReplicaSet", "rs-1", "u1")
BASE: dict[str, Any] = {"name": "p", "labels": {"app": "a"}, "cpu": "1"}


@pytest.fixture
def classes() -> PodClasses:
    return PodClasses()


def class_of(pod: Pod, classes: PodClasses) -> PodClass:
    return make_pod_info(pod, classes).pod_class


def test_a_pod_info_has_the_identity_and_the_class_has_the_rest(classes: PodClasses) -> None:
    pod = make_pod(
        "p", namespace="red", cpu="1500m", memory="1Gi", labels={"app": "a"}, node="n", priority=7
    )
    info = make_pod_info(pod, classes)
    assert info.key == "red/p"
    assert info.reference.uid == "uid-p"
    assert info.node_name == "n"
    assert info.spec.node_name == ""
    assert info.labels == {"app": "a"}
    assert info.priority == 7
    assert info.requests == {"cpu": 1500, "memory": 2**30}
    assert info.on_node("m").node_name == "m"


def test_containers_without_requests_count_with_the_defaults(classes: PodClasses) -> None:
    pod_class = class_of(make_pod(images=("a", "b"), cpu="1"), classes)
    assert pod_class.nonzero_cpu_milli == 1100
    assert pod_class.nonzero_memory_bytes == 2 * 200 * 2**20


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "other", "uid": "u9"},
        {"node": "n1"},
        {"resource_version": "9", "created": "2026-02-02T00:00:00Z", "terminating": True},
        {"phase": "Running", "started": "2026-02-02T00:00:00Z"},
        {"nominated_node": "n1"},
        {"scheduling_group": PodSchedulingGroup("g")},
        {"volumes": (Volume("kube-api-access-x7k2p"),)},
        {"volumes": (Volume("v", PersistentVolumeClaimVolumeSource("c")),)},
    ],
)
def test_the_identity_of_a_pod_does_not_affect_its_class(
    classes: PodClasses, changes: dict[str, Any]
) -> None:
    plain = make_pod(**BASE, owner=REPLICA_SET)
    other = make_pod(**BASE | changes, owner=REPLICA_SET)
    assert class_of(plain, classes) is class_of(other, classes)


@pytest.mark.parametrize(
    "changes",
    [
        {"labels": {"app": "b"}},
        {"namespace": "red"},
        {"cpu": "2"},
        {"priority": 1},
        {"host_ports": [80]},
        {"gates": ["g"]},
        {"owner": owned_by("ReplicaSet", "rs-2", "u2")},
        {"volumes": (Volume("v", image=ImageVolumeSource("model")),)},
        {"scheduler_name": "other"},
    ],
)
def test_fields_that_scheduling_reads_distinguish_classes(
    classes: PodClasses, changes: dict[str, Any]
) -> None:
    plain = make_pod(**BASE)
    other = make_pod(**BASE | changes)
    assert class_of(plain, classes) is not class_of(other, classes)


@pytest.mark.parametrize(
    ("changes", "shares"),
    [
        ({"labels": {"app": "b"}}, True),
        ({"namespace": "red"}, True),
        ({"owner": REPLICA_SET}, True),
        ({"affinity": Affinity(pod_affinity=PodAffinity((affinity_term(HOSTNAME),)))}, True),
        ({"topology_spread_constraints": (TopologySpreadConstraint(),)}, True),
        ({"cpu": "2"}, False),
        ({"priority": 1}, False),
        ({"affinity": Affinity(node_affinity=NodeAffinity())}, False),
        ({"node_selector": {"disk": "ssd"}}, False),
        ({"host_ports": (80,)}, False),
    ],
)
def test_classes_with_the_same_node_requirements_share_a_node_demand(
    classes: PodClasses, changes: dict[str, Any], shares: bool
) -> None:
    one = class_of(make_pod(**BASE), classes)
    other = class_of(make_pod(**{**BASE, **changes}), classes)
    assert one is not other
    assert (one.demand is other.demand) == shares
    assert len({one.id, other.id, one.demand.id}) == 3


def test_owners_of_the_same_name_are_distinguished_by_uid(classes: PodClasses) -> None:
    made_anew = owned_by("ReplicaSet", "rs-1", "u2")
    first, second = (class_of(make_pod(owner=each), classes) for each in (REPLICA_SET, made_anew))
    assert first is not second
    assert (first.controller_uid, second.controller_uid) == ("u1", "u2")
    assert class_of(make_pod(), classes).controller_uid == ""


def test_a_pod_keeps_the_volumes_that_scheduling_reads(classes: PodClasses) -> None:
    read = (
        Volume("data", PersistentVolumeClaimVolumeSource("c")),
        Volume("scratch", ephemeral=EphemeralVolumeSource()),
    )
    others = (Volume("kube-api-access-x7k2p"), Volume("tools", image=ImageVolumeSource("t")))
    info = make_pod_info(make_pod(volumes=(*read, *others)), classes)
    assert info.volumes == read
    assert [volume.name for volume in info.spec.volumes] == ["tools"]


def test_a_running_pod_shares_the_class_unless_it_is_being_resized(classes: PodClasses) -> None:
    pod = make_pod(cpu="1")

    def running(cpu: str, *conditions: Condition) -> Pod:
        status = ContainerStatus("c0", {"cpu": cpu}, ResourceRequirements({"cpu": cpu}))
        return replace(pod, status=PodStatus("Running", conditions, container_statuses=(status,)))

    ready = Condition("Ready", "True")
    assert class_of(running("1", ready), classes) is class_of(pod, classes)
    assert class_of(running("2", ready), classes).requests == {"cpu": 2000}
    infeasible = Condition("PodResizePending", "True", "Infeasible")
    assert class_of(running("500m", infeasible), classes).requests == {"cpu": 500}


def test_running_pods_of_a_daemon_set_share_a_class(classes: PodClasses) -> None:
    def daemon(node: str, phase: str) -> Pod:
        term = NodeSelectorTerm(
            match_fields=(NodeSelectorRequirement("metadata.name", "In", (node,)),)
        )
        affinity = Affinity(NodeAffinity(NodeSelector((term,))))
        return make_pod(f"d-{node}", node=node, affinity=affinity, phase=phase)

    running = [class_of(daemon(node, "Running"), classes) for node in ("a", "b")]
    pending = [class_of(daemon(node, "Pending"), classes) for node in ("a", "b")]
    assert running[0] is running[1]
    assert pending[0] is not pending[1]


def test_a_class_without_pods_is_removed_and_its_id_is_not_reused(classes: PodClasses) -> None:
    first = class_of(make_pod(cpu="1"), classes).id
    gc.collect()
    assert len(classes) == 0
    assert class_of(make_pod(cpu="1"), classes).id != first


def test_without_their_gate_resources_of_the_pod_as_a_whole_make_no_difference() -> None:
    large, larger = (ResourceRequirements({"cpu": cpu}) for cpu in ("4", "8"))
    pod = make_pod(cpu="1", resources=large)
    resized = replace(pod, status=PodStatus(resources=larger, allocated_resources={"cpu": "8"}))
    for pod_level, amounts in ((True, [4000, 8000]), (False, [1000, 1000])):
        classes = PodClasses(pod_level=pod_level)
        found = [class_of(each, classes) for each in (pod, resized)]
        assert [each.requests["cpu"] for each in found] == amounts
        assert len(classes) == len(set(amounts))


def test_host_ports_are_those_of_containers_and_sidecars(classes: PodClasses) -> None:
    def container(port: int, restart_policy: str = "") -> Container:
        return Container(ports=(ContainerPort(port),), restart_policy=restart_policy)

    pod = make_pod(
        host_ports=[80, ContainerPort(53, "10.0.0.1", "UDP"), ContainerPort()],
        init_containers=(container(2), container(1, "Always")),
    )
    assert class_of(pod, classes).host_ports == (
        ("0.0.0.0", "TCP", 1),
        ("0.0.0.0", "TCP", 80),
        ("10.0.0.1", "UDP", 53),
    )


def test_images_are_those_of_init_containers_containers_and_volumes(classes: PodClasses) -> None:
    pod = make_pod(
        images=("a", "b"),
        init_containers=(Container(image="init"),),
        volumes=(Volume("v", image=ImageVolumeSource("model")),),
    )
    assert class_of(pod, classes).images == ("init", "a", "b", "model")


def test_only_controllers_with_a_selector_are_kept(classes: PodClasses) -> None:
    job = owned_by("Job", "j", "u")
    assert class_of(make_pod(owner=REPLICA_SET), classes).controller == ("ReplicaSet", "rs-1")
    assert class_of(make_pod(owner=job), classes).controller is None
    assert class_of(make_pod(owner=job), classes) is class_of(make_pod(), classes)


def test_the_error_for_an_invalid_quantity_names_it(classes: PodClasses) -> None:
    with pytest.raises(InvalidObject, match=r"default/p.*requests\[cpu\].*lots"):
        make_pod_info(make_pod(cpu="lots"), classes)


def test_the_error_for_an_invalid_selector_names_it(classes: PodClasses) -> None:
    selector = label_selector(None, ("app", "Near", ["a"]))
    rules = PodAffinity((affinity_term(HOSTNAME, selector),))
    with pytest.raises(InvalidObject) as caught:
        make_pod_info(make_pod(affinity=Affinity(pod_anti_affinity=rules)), classes)
    assert caught.value.field == (
        "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]"
        ".labelSelector"
    )
    assert "Near" in caught.value.value


def test_a_container_status_as_its_spec_requests_leaves_the_class_as_it_is(
    classes: PodClasses,
) -> None:
    init = Container(name="init", resources=ResourceRequirements({"cpu": "2"}))
    pod = make_pod(cpu="1", init_containers=(init,))
    status = ContainerStatus("init", {"cpu": "2"}, ResourceRequirements({"cpu": "2"}))
    running = replace(pod, status=PodStatus("Running", init_container_statuses=(status,)))
    assert class_of(running, classes) is class_of(pod, classes)


def test_running_pods_of_a_daemon_set_keep_their_pod_affinity(classes: PodClasses) -> None:
    rules = PodAffinity((affinity_term(HOSTNAME, label_selector({"app": "a"})),))

    def daemon(node: str, **rest: PodAffinity) -> PodClass:
        term = NodeSelectorTerm(
            match_fields=(NodeSelectorRequirement("metadata.name", "In", (node,)),)
        )
        affinity = Affinity(NodeAffinity(NodeSelector((term,))), **rest)
        pod = make_pod(f"d-{node}", node=node, affinity=affinity, phase="Running")
        return class_of(pod, classes)

    first, second = (daemon(node, pod_anti_affinity=rules) for node in ("a", "b"))
    assert first is second
    assert len(first.required_anti_affinity_terms) == 1
    assert daemon("a") is not first
