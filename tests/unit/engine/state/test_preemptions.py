"""Preemptions in progress, and who waits for which victim."""

from __future__ import annotations

from stowage.api.instructions import PodReference
from stowage.engine.state.preemptions import OngoingPreemption, Preemptions
from tests.support.builders import make_pod
from tests.support.mirrored_cluster import MirroredCluster

CLUSTER = MirroredCluster()
P = PodReference("default", "p", "uid-p")


def _preemption(last_victim: str) -> OngoingPreemption:
    victim = CLUSTER.info(make_pod(last_victim, node="n"))
    return OngoingPreemption(P, "default-scheduler", "n", 0.0, victim)


def test_a_preemptor_waits_for_the_last_victim_of_its_latest_preemption() -> None:
    preemptions = Preemptions()
    for last_victim in ("first", "second"):
        preemption = _preemption(last_victim)
        preemptions.start(preemption)
        preemptions.start_last_eviction(preemption)
    assert list(preemptions.inconsistencies()) == []
    preemptions.victim_leaves("uid-first")
    assert list(preemptions.released) == []
    preemptions.victim_leaves("uid-second")
    assert list(preemptions.released) == ["uid-p"]


def test_a_preemptor_that_is_listed_under_another_victim_is_inconsistent() -> None:
    preemptions, listed = Preemptions(), _preemption("first")
    preemptions.start(listed)
    preemptions.start_last_eviction(listed)
    preemptions.end(_preemption("second"))
    assert list(preemptions.inconsistencies()) == [
        "preemptor uid-p is listed under uid-first, not its last victim"
    ]
