"""The gate that keeps preemptors out of the active queue during their evictions."""

from __future__ import annotations

from stowage.api.config.loading import KubeSchedulerProfile
from stowage.engine import make_engine
from stowage.framework import Framework, build_profile
from stowage.plugins import in_tree_registry


def test_the_gate_of_preemptors_says_which_pods_it_admits_so_that_not_each_is_asked() -> None:
    framework = Framework(build_profile(KubeSchedulerProfile("stowage"), in_tree_registry()))
    make_engine([framework], lambda _num_ties: 0)
    released = framework.gating.released("DefaultPreemption")
    assert released is not None
    assert list(released) == []
    assert framework.gating.released("SchedulingGates") is None
