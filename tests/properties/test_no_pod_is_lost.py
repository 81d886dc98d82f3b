"""No order of watch events and no fault loses a pod, binds it twice or overcommits a node."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stowage.api.values.resources import node_allocatable, pod_requests
from tests.properties.random_runs import RandomRun, RunWithExtenders, RunWithReconfiguration
from tests.support.builders import make_node, make_pod
from tests.support.models.cluster_driver import ClusterDriver
from tests.support.models.model_cluster import ModelCluster

RUNS = (RandomRun, RunWithExtenders, RunWithReconfiguration)


@pytest.mark.parametrize("run_type", RUNS)
@settings(max_examples=60)
@given(seed=st.integers(0, 2**32), steps=st.integers(1, 60))
def test_every_pod_is_bound_once_or_fits_on_no_node(
    run_type: type[RandomRun], seed: int, steps: int
) -> None:
    run = run_type(seed)
    for _ in range(steps):
        run.step()
    run.settle()
    run.engine.validate()
    unbound = {pod.metadata.uid for pod in run.cluster.unbound()}
    assert sum(run.engine.pending_counts().values()) == len(unbound)
    assert unbound <= run.cluster.conditions.keys()
    assert run.engine.in_flight() == 0
    assert run.engine.cache_counts()["assumed_pods"] == 0
    dump = run.engine.dump()
    assert dump["preemptions"] == []
    assert dump["consultations"] == {}
    if run_type is RandomRun:
        _check_that_no_preemption_helps(run.cluster)


def _check_that_no_preemption_helps(cluster: ModelCluster) -> None:
    """Check that no unbound pod fits on a node without the pods of lower priority."""
    for pod in cluster.unbound():
        priority = pod.spec.priority or 0
        for name, node in cluster.nodes.items():
            rivals = [
                pod_requests(other).get("cpu", 0)
                for other in cluster.pods.values()
                if other.spec.node_name == name and (other.spec.priority or 0) >= priority
            ]
            have = node_allocatable(node)
            wanted = pod_requests(pod).get("cpu", 0)
            assert sum(rivals) + wanted > have["cpu"] or len(rivals) >= have["pods"]


@pytest.mark.parametrize("run_type", RUNS)
@settings(max_examples=30)
@given(seed=st.integers(0, 2**32), steps=st.integers(1, 40))
def test_replaying_the_journal_reaches_the_same_state(
    run_type: type[RandomRun], seed: int, steps: int
) -> None:
    run = run_type(seed)
    for _ in range(steps):
        run.step()
    run.check_replay()


def test_a_pod_with_a_lost_binding_answer_keeps_its_resources() -> None:
    """kube-scheduler forgets such a pod at once and may then overcommit the node."""
    driver = ClusterDriver()
    cluster = driver.cluster
    cluster.add_node(make_node("n", cpu="1"))
    cluster.create_pod(make_pod("p", cpu="1"))
    cluster.create_pod(make_pod("q", cpu="1"))
    cluster.lost_answers = 1
    driver.deliver()
    cluster.assigned_watch.clear()
    driver.schedule()
    cluster.assigned_watch.clear()
    for driver.now in (5.0, 15.0, 400.0):
        driver.deliver()
        driver.schedule()
    assert [pod.metadata.name for pod in cluster.unbound()] == ["q"]


@pytest.mark.parametrize("seed", range(5))
def test_a_pod_bound_and_deleted_without_a_watch_event_does_not_stay_assumed(seed: int) -> None:
    driver = ClusterDriver(rng=Random(seed))
    cluster = driver.cluster
    cluster.add_node(make_node("n", cpu="1"))
    cluster.create_pod(make_pod("p", cpu="1"))
    driver.deliver()
    driver.schedule(1)
    cluster.delete_pod("uid-p")
    cluster.assigned_watch.clear()
    driver.deliver()
    assert driver.engine.cache_counts()["assumed_pods"] == 1
    driver.now = 31.0
    driver.deliver()
    driver.deliver()
    assert driver.engine.cache_counts()["pods"] == 0
