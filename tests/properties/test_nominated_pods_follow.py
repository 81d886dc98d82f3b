"""The incremental counts of nominated pods equal a count over all nominations."""

from __future__ import annotations

import random
from collections.abc import Collection

from hypothesis import given, settings
from hypothesis import strategies as st

from stowage.framework.runtime.nominated_pods import NominatedPods
from stowage.queue import Nominator
from stowage.state.pods.pod_info import PodInfo, make_pod_info
from stowage.state.snapshot import Snapshot
from tests.support.builders import make_node, make_pod
from tests.support.mirrored_cluster import MirroredCluster

_NODES = tuple(f"n{index}" for index in range(6))
_PODS = tuple(f"p{index}" for index in range(90))


class _NominationHistory:
    """Random changes of nodes and nominations."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.cluster = MirroredCluster()
        self.nominator = Nominator()
        self.cluster.update_node(make_node("n0", cpu="4"))

    def info(self, name: str) -> PodInfo:
        choose = self.random.choice
        pod = make_pod(
            name,
            priority=choose((1, 5, 10)),
            cpu=choose(("100m", "1", "2")),
            requests={"example.com/gpu": "1"} if self.random.random() < 0.1 else {},
            terminating=self.random.random() < 0.2,
        )
        return make_pod_info(pod, self.cluster.cache.classes)

    def change(self) -> None:
        """Apply one change of a node or of a nomination."""
        choose, name = self.random.choice, self.random.choice(_PODS)
        match self.random.randint(0, 6):
            case 0:
                self.cluster.cache.update_node(make_node(choose(_NODES), cpu=choose(("2", "4"))))
            case 1:
                self.cluster.cache.remove_node(choose(_NODES))
            case 2:
                self.nominator.remove(f"uid-{name}")
            case 3:
                self.nominator.refresh(self.info(name))
            case _:
                self.nominator.nominate(self.info(name), choose(_NODES))


def _considered_one_by_one(
    pod: PodInfo, nominator: Nominator, snapshot: Snapshot
) -> dict[str, list[PodInfo]]:
    """``addGENominatedPods``: nominated pods of equal or higher priority, except the pod itself."""
    return {
        name: [
            each
            for each in nominator.pods_on(name)
            if each.priority >= pod.priority and each.uid != pod.uid
        ]
        for name in _NODES
        if snapshot.row_of(name) is not None
    }


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_nominated_pods_considered_for_a_pod_equal_those_of_all_nominations(seed: int) -> None:
    history, kept = _NominationHistory(seed), NominatedPods()
    for _ in range(25):
        for _ in range(history.random.choice((0, 1, 3, 20))):
            history.change()
        snapshot, pod = history.cluster.snapshot(), history.info(history.random.choice(_PODS))
        wanted = _considered_one_by_one(pod, history.nominator, snapshot)
        added = kept.beside(pod, history.nominator, snapshot)
        assert len(added) == sum(map(len, wanted.values()))
        for name, pods in wanted.items():
            row = snapshot.row_of(name)
            assert row is not None
            assert {each.uid: each for each in added.on(row)} == {each.uid: each for each in pods}
        assert list(kept.problems(history.nominator, snapshot)) == []


def test_a_reader_older_than_the_change_log_reads_all_nominations_again() -> None:
    history, kept = _NominationHistory(1), NominatedPods()
    history.nominator.nominate(history.info("p0"), "n0")
    asking, snapshot = history.info("asking"), history.cluster.snapshot()
    kept.beside(asking, history.nominator, snapshot)
    for _ in range(10_000):
        history.nominator.nominate(history.info("p1"), "n0")
    history.nominator.remove("uid-p0")
    assert list(kept.problems(history.nominator, snapshot)) == []


class _HidesChanges(Nominator):
    def changed_since(self, generation: int) -> Collection[str] | None:
        return ()


def test_validate_reports_a_missed_nomination() -> None:
    history, kept, nominator = _NominationHistory(1), NominatedPods(), _HidesChanges()
    nominator.nominate(history.info("p0"), "n0")
    snapshot = history.cluster.snapshot()
    kept.beside(history.info("asking"), nominator, snapshot)
    nominator.nominate(history.info("p1"), "n0")
    assert any("nominated pods are kept as" in text for text in kept.problems(nominator, snapshot))
