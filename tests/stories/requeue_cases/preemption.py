"""DefaultPreemption: a preemptor waits for its victims, and for nothing else."""

from __future__ import annotations

from stowage.api.objects.pod import Pod
from tests.stories.requeue_cases.case import (
    NO_PODS,
    Delete,
    Put,
    RequeueCase,
    near,
    node,
    only,
    placed,
    pod,
    pods_with,
)

PREEMPTION = ("NodeResourcesFit", "DefaultPreemption")
LARGE = pod("p", cpu="4", priority=10)


def victim(name: str, cpu: str, *, terminating: bool = False) -> Pod:
    """A pod on node n without priority."""
    return placed(name, "n", cpu=cpu, terminating=terminating)


PREEMPTION_CASES = (
    RequeueCase(
        "the only victim is deleted",
        PREEMPTION,
        objects=[node(), victim("v", "4")],
        pending=[LARGE],
        trigger=[Delete(victim("v", "4"))],
        requeued=only("p"),
    ),
    RequeueCase(
        "one of two victims is deleted",
        PREEMPTION,
        objects=[node(), victim("v", "2"), victim("w", "2")],
        pending=[LARGE],
        trigger=[Delete(victim("v", "2"))],
        requeued=NO_PODS,
    ),
    RequeueCase(
        "the only victim is terminating",
        PREEMPTION,
        objects=[node(), victim("v", "4")],
        pending=[LARGE],
        trigger=[Put(victim("v", "4", terminating=True))],
        requeued=NO_PODS,
    ),
    RequeueCase(
        "the only victim is terminating and then deleted",
        PREEMPTION,
        objects=[node(), victim("v", "4")],
        pending=[LARGE],
        trigger=[Put(victim("v", "4", terminating=True)), Delete(victim("v", "4"))],
        requeued=only("p"),
    ),
    RequeueCase(
        "a pod that is no victim is deleted while the victim exists",
        PREEMPTION,
        objects=[node(), victim("v", "4"), node("m", cpu="1"), placed("w", "m", cpu="1")],
        pending=[LARGE],
        trigger=[Delete(placed("w", "m", cpu="1"))],
        requeued=NO_PODS,
    ),
    RequeueCase(
        "the plugin that rejected the node of the victims accepts it",
        ("NodeResourcesFit", "InterPodAffinity", "DefaultPreemption"),
        objects=[node(labels={"node": "n"}), victim("v", "4")],
        pending=[pod("p", cpu="4", priority=10, affinity=near(pods_with("a", "node")))],
        trigger=[Put(placed("r", "n", {"a": "1"}))],
        requeued=only("p"),
    ),
)
