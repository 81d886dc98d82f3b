from __future__ import annotations

import pytest

from stowage.api.status import Code
from stowage.framework import NoArgs
from stowage.plugins.node_name import NodeName
from tests.support.builders import make_node, make_pod
from tests.support.mirrored_cluster import MirroredCluster
from tests.unit.plugins.single_plugin import refused


@pytest.mark.parametrize(
    ("wanted", "want"), [("", []), ("n1", ["n0", "n2"]), ("gone", ["n0", "n1", "n2"])]
)
def test_a_pod_with_a_node_name_fits_only_that_node(wanted: str, want: list[str]) -> None:
    cluster = MirroredCluster([make_node(f"n{index}") for index in range(3)])
    found = refused(NodeName(NoArgs()), cluster, make_pod("p", node=wanted))
    assert sorted(found) == want
    for status in found.values():
        assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
        assert status.reasons == ("node(s) didn't match the requested node name",)
