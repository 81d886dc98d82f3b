"""What the simulation expects of pods that wait once everything has settled."""

from __future__ import annotations

import pytest

from tests.simulation.end_state import cluster_violations
from tests.simulation.gang_objects import make_group, make_member
from tests.simulation.objects import HOSTNAME, SCHEDULER_NAME, make_node, make_pod
from tests.simulation.server import GROUPS, NODES, PODS, Json, ModelServer


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


def _member(name: str, **spec: object) -> Json:
    pod = make_member(GROUPS, "gang", name, "1", priority=10)
    return pod | {"spec": pod["spec"] | spec}
