from __future__ import annotations

import pytest

from stowage.api.objects.pod import Toleration
from stowage.api.status import Code
from stowage.framework import NoArgs
from stowage.plugins.node_unschedulable import NodeUnschedulable
from tests.support.builders import make_node, make_pod
from tests.support.mirrored_cluster import MirroredCluster
from tests.unit.plugins.single_plugin import refused

CORDON = "node.kubernetes.io/unschedulable"


@pytest.mark.parametrize(
    ("tolerations", "want"),
    [
        ([], ["n1"]),
        ([Toleration(key=CORDON, operator="Exists")], []),
        ([Toleration(operator="Exists", effect="NoSchedule")], []),
        ([Toleration(operator="Exists", effect="NoExecute")], ["n1"]),
    ],
)
def test_a_cordoned_node_fits_only_pods_that_tolerate_it(
    tolerations: list[Toleration], want: list[str]
) -> None:
    cluster = MirroredCluster([make_node("n0"), make_node("n1", unschedulable=True)])
    found = refused(NodeUnschedulable(NoArgs()), cluster, make_pod("p", tolerations=tolerations))
    assert sorted(found) == want
    for status in found.values():
        assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
        assert status.reasons == ("node(s) were unschedulable",)
