"""Questions about a cluster know its pod groups."""

from __future__ import annotations

from typing import Any

from stowage.analysis.cluster_objects import ClusterObjects
from stowage.api.events import PendingPodSeen, PodGroupSeen
from stowage.api.objects.pod_groups import CORE_GROUPS, COSCHEDULING_GROUPS

GANG = {"schedulingPolicy": {"gang": {"minCount": 3}}}


def _group(version: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    metadata = {"namespace": "d", "name": name}
    return {"apiVersion": version, "kind": "PodGroup", "metadata": metadata, "spec": spec}


def test_groups_are_read_by_their_api_group_and_shown_before_the_pods() -> None:
    pod = {"kind": "Pod", "metadata": {"namespace": "d", "name": "p", "uid": "u"}, "spec": {}}
    objects = ClusterObjects.of(
        [
            pod,
            _group("scheduling.k8s.io/v1alpha2", "g", GANG),
            _group("scheduling.x-k8s.io/v1alpha1", "c", {"minMember": 4}),
            _group("scheduling.volcano.sh/v1beta1", "v", {"minMember": 5}),
        ]
    )
    *groups, last = objects.events()
    assert isinstance(last, PendingPodSeen)
    assert objects.invalid == []
    assert {
        (each.source, each.group.key, each.group.min_count)
        for each in groups
        if isinstance(each, PodGroupSeen)
    } == {(CORE_GROUPS, "d/g", 3), (COSCHEDULING_GROUPS, "d/c", 4)}
