"""A large gang: scheduled, refused and deleted."""

from __future__ import annotations

from stowage.api.decoding.decode import convert_object
from stowage.api.events import PendingPodGone, PodGroupGone, PodGroupSeen
from stowage.api.objects.pod_groups import PodGroup
from stowage_benchmarks.steps.shapes.shape import Shapes, Size, basic_cluster, pod, requesting
from stowage_benchmarks.steps.shell import MeasuredShell
from stowage_benchmarks.workloads import NAMESPACE

_MEMBERS = 10_000


def _scheduled(shell: MeasuredShell, size: Size) -> None:
    basic_cluster(shell, size)
    _arrive(shell, size.of(_MEMBERS), cpu="100m")
    shell.schedule()


def _refused(shell: MeasuredShell, size: Size) -> None:
    """The last members find no node, so none is bound; then all of it is deleted."""
    basic_cluster(shell, size)
    members = size.of(_MEMBERS)
    _arrive(shell, members, cpu="2500m")
    shell.schedule()
    _delete(shell, members)


def _deleted(shell: MeasuredShell, size: Size) -> None:
    """It waits for one more member when it is deleted."""
    basic_cluster(shell, size)
    members = size.of(_MEMBERS)
    _arrive(shell, members, cpu="100m", min_count=members + 1)
    shell.schedule()
    _delete(shell, members)


def _arrive(shell: MeasuredShell, members: int, cpu: str, min_count: int = 0) -> None:
    manifest = {
        "metadata": {"name": "gang", "namespace": NAMESPACE, "uid": "uid-gang"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": min_count or members}}},
    }
    shell.receive([PodGroupSeen(convert_object(PodGroup, manifest))])
    containers, group = requesting(cpu=cpu), {"podGroupName": "gang"}
    shell.list_pods(
        pod(f"member-{index}", containers=containers, schedulingGroup=group)
        for index in range(members)
    )


def _delete(shell: MeasuredShell, members: int) -> None:
    shell.receive([PodGroupGone(NAMESPACE, "gang")])
    shell.receive(
        PendingPodGone(NAMESPACE, f"member-{index}", f"uid-member-{index}")
        for index in range(members)
    )


GANG_SHAPES: Shapes = {
    "a gang of 10,000": _scheduled,
    "a gang of 10,000 that finds no room, then deleted": _refused,
    "a waiting gang of 10,000 deleted": _deleted,
}
