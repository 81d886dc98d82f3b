"""The index of pods by node equals a recount of all pods after any changes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from stowage.analysis.cluster_objects import ClusterObjects
from stowage.api.objects.pod import Pod
from tests.support.builders import make_pod

NAMES = ("a", "b", "c")
NODES = ("", "n0", "n1")

steps = st.tuples(
    st.sampled_from(NAMES), st.sampled_from((*NODES, None)), st.sampled_from(("Running", "Failed"))
)


def live(objects: ClusterObjects) -> list[Pod]:
    return [pod for pod in objects.pods() if pod.status.phase == "Running"]


def nodes(objects: ClusterObjects) -> dict[str, str]:
    return {pod.metadata.namespaced_name: pod.spec.node_name for pod in live(objects)}


def carry_out(objects: ClusterObjects, name: str, node: str | None, phase: str) -> None:
    """Put the pod on a node; without a node remove it."""
    if node is None:
        objects.remove("Pod", f"default/{name}")
        return
    pod = make_pod(name, node=node)
    objects.add(replace(pod, status=replace(pod.status, phase=phase)))


@given(before=st.lists(steps, max_size=4), after=st.lists(steps, max_size=8))
def test_the_index_equals_a_recount(
    before: list[tuple[str, str | None, str]], after: list[tuple[str, str | None, str]]
) -> None:
    objects = ClusterObjects()
    for step in before:
        carry_out(objects, *step)
    index, start = objects.pods_by_node(), nodes(objects)
    for step in after:
        carry_out(objects, *step)
    assert index.num_pods == len(live(objects))
    for node in NODES[1:]:
        found = {pod.metadata.name: pod for pod in index.on_node(node)}
        assert found == {
            pod.metadata.name: pod for pod in live(objects) if pod.spec.node_name == node
        }
    now = nodes(objects)
    assert sorted(index.pending()) == sorted(key for key, node in now.items() if not node)
    assert index.num_pending == len(index.pending())
    for key, was in index.changed.items():
        assert was == start.get(key)
    assert {key for key in now.keys() | start.keys() if now.get(key) != start.get(key)} <= (
        index.changed.keys()
    )
