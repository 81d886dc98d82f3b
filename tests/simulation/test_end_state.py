"""What the simulation expects of waiting pods and of engines once everything has settled."""

from __future__ import annotations

import pytest

from stowage.api.reflected_kinds import POD_GROUP_SOURCES, REFLECTED_KINDS
from tests.simulation import server as paths
from tests.simulation.device_objects import make_device_claim, make_device_classes, make_slices
from tests.simulation.end_state import cluster_violations, engine_violations
from tests.simulation.gang_objects import make_group, make_member
from tests.simulation.objects import (
    HOSTNAME,
    RACK,
    SCHEDULER_NAME,
    make_attachment,
    make_budget,
    make_claim,
    make_classes,
    make_csi_node,
    make_namespace,
    make_node,
    make_pod,
    make_volume,
)
from tests.simulation.server import GROUPS, NODES, PODS, Json, ModelServer
from tests.support.engines import default_engine

SIMULATED: dict[str, Json] = {
    PODS: make_pod("p", "1", nodeName="n"),
    NODES: make_node("n"),
    paths.NAMESPACES: make_namespace("a", "red"),
    paths.CLAIMS: make_claim("c", "fast"),
    paths.VOLUMES: make_volume("v", "fast"),
    paths.CLASSES: make_classes()[0],
    paths.CSI_NODES: make_csi_node("n"),
    paths.ATTACHMENTS: make_attachment("v", "n"),
    paths.DEVICE_CLAIMS: make_device_claim("c", "whole"),
    paths.DEVICE_CLASSES: make_device_classes()[0],
    paths.SLICES: make_slices("n", 1, 2)[0],
    paths.BUDGETS: make_budget("b", "web", 1),
    GROUPS: make_group(GROUPS, "g", 2),
    paths.LABEL_GROUPS: make_group(paths.LABEL_GROUPS, "g", 2),
}
"""An object of each kind that simulated users, kubelets and controllers make."""
NOT_SIMULATED = {
    "/api/v1/services",
    "/api/v1/replicationcontrollers",
    "/apis/apps/v1/replicasets",
    "/apis/apps/v1/statefulsets",
    "/apis/storage.k8s.io/v1/csidrivers",
    "/apis/storage.k8s.io/v1/csistoragecapacities",
}


@pytest.mark.parametrize(("selector", "num_violations"), [({HOSTNAME: "b"}, 0), ({}, 2)])
def test_a_gang_that_fits_only_if_a_tie_falls_well_may_wait(
    selector: dict[str, str], num_violations: int
) -> None:
    """The first member may take node b, on which alone the second one fits."""
    server = ModelServer(lambda: 0.0)
    server.served_groups[GROUPS] = 0.0
    server.create(GROUPS, make_group(GROUPS, "gang", 2))
    for name in "ab":
        server.create(NODES, make_node(name, 1))
        server.create(PODS, make_pod(f"on-{name}", "1", nodeName=name))
    server.create(PODS, _member("first"))
    server.create(PODS, _member("second", nodeSelector=selector))

    found = list(cluster_violations(server, [SCHEDULER_NAME], []))

    assert len([each for each in found if "could take the place of" in each]) == num_violations


@pytest.mark.parametrize(
    ("is_in_one_rack", "has_companion", "moves", "num_violations"),
    [
        (True, True, "empty", 0),
        (True, True, "full", 0),
        (True, False, "empty", 1),
        (False, True, "empty", 1),
    ],
)
def test_the_surplus_of_a_group_may_wait_when_its_rack_gets_a_node_by_a_label(
    is_in_one_rack: bool, has_companion: bool, moves: str, num_violations: int
) -> None:
    server = ModelServer(lambda: 0.0)
    server.served_groups[GROUPS] = 0.0
    server.create(GROUPS, make_group(GROUPS, "group", None, is_in_one_rack=is_in_one_rack))
    for name in ("full", "empty"):
        server.create(NODES, _with_rack(make_node(name, 1), "old" if name == moves else "new"))
    bound = make_member(GROUPS, "group" if has_companion else "other", "bound", "1", priority=0)
    server.create(PODS, bound | {"spec": bound["spec"] | {"nodeName": "full"}})
    server.create(PODS, make_member(GROUPS, "group", "surplus", "1", priority=0))
    server.update(NODES, ("", moves), metadata=_with_rack(make_node(moves), "new")["metadata"])

    found = list(cluster_violations(server, [SCHEDULER_NAME], []))

    assert len([each for each in found if "could be on empty" in each]) == num_violations


def _with_rack(node: Json, rack: str) -> Json:
    metadata = node["metadata"]
    return node | {"metadata": metadata | {"labels": metadata["labels"] | {RACK: rack}}}


def test_every_kind_that_the_scheduler_follows_is_simulated_or_known_not_to_be() -> None:
    followed = {kind.path for kind in (*REFLECTED_KINDS, *POD_GROUP_SOURCES)}
    assert {*SIMULATED, *NOT_SIMULATED} == followed
    assert not NOT_SIMULATED & {each for each in vars(paths).values() if isinstance(each, str)}


@pytest.mark.parametrize("path", SIMULATED)
def test_an_object_that_the_engine_has_not_seen_is_a_violation(path: str) -> None:
    server = ModelServer(lambda: 0.0)
    engine = default_engine()
    assert list(engine_violations(server, engine, [SCHEDULER_NAME])) == []
    stored = server.create(path, SIMULATED[path])
    found = list(engine_violations(server, engine, [SCHEDULER_NAME]))
    assert [each for each in found if stored["metadata"]["name"] in each]


def _member(name: str, **spec: object) -> Json:
    pod = make_member(GROUPS, "gang", name, "1", priority=10)
    return pod | {"spec": pod["spec"] | spec}
