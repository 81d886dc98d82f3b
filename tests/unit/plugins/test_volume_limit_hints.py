"""NodeVolumeLimits: which deleted pods may bring a rejected pod back."""

from __future__ import annotations

import pytest

from stowage.api.cluster_events import ActionType, EventResource, QueueingHint
from stowage.api.objects.pod import Pod
from stowage.framework import NoArgs
from stowage.plugins.volumes import NodeVolumeLimits
from tests.support.builders import make_pod
from tests.support.mirrored_cluster import MirroredCluster
from tests.support.volume_builders import claim_volume


@pytest.mark.parametrize(
    ("deleted", "want"),
    [
        (make_pod("gone", node="n", volumes=(claim_volume("c"),)), QueueingHint.QUEUE),
        (make_pod("gone", node="n"), QueueingHint.SKIP),
        (make_pod("gone", volumes=(claim_volume("c"),)), QueueingHint.SKIP),
    ],
    ids=["with a volume", "without volumes", "on no node"],
)
def test_a_deleted_pod_helps_if_it_may_have_had_a_volume_attached(
    deleted: Pod, want: QueueingHint
) -> None:
    (registration,) = (
        each
        for each in NodeVolumeLimits(NoArgs()).events_to_register()
        if (each.event.resource, each.event.action)
        == (EventResource.ASSIGNED_POD, ActionType.DELETE)
    )
    info = MirroredCluster().info
    assert registration.hint is not None
    assert registration.hint(info(make_pod("p")), info(deleted), None) is want
