"""The final checks of the chaos benchmark: pending pods and memory growth."""

from __future__ import annotations

from itertools import islice
from typing import Any

import msgspec

from simcluster.harness.audit import ClusterState
from stowage.api.decoding.decode import decode_pod
from stowage.api.objects.pod import Pod
from stowage_benchmarks.chaos.ledger import Disturbance, Ledger
from stowage_benchmarks.chaos.plan import KILL_LEADER, STOP_LEADER
from stowage_benchmarks.chaos.pods import GATED, HUGE, calm_pod, pod_lives
from stowage_benchmarks.chaos.result import Memory, final_violations, recoveries


def _pending(name: str, reason: str = "", **spec: Any) -> Pod:
    pod = calm_pod(name, "stowage")
    pod["metadata"]["uid"] = f"uid-{name}"
    pod["spec"] |= spec
    condition = {"type": "PodScheduled", "status": "False", "reason": reason, "message": "no room"}
    pod["status"] = {"phase": "Pending", "conditions": [condition] if reason else []}
    return decode_pod(msgspec.json.encode(pod))


def _violations(*pods: Pod, memory: tuple[Memory, ...] = ()) -> list[str]:
    state = ClusterState([], list(pods))
    return list(final_violations(Ledger("stowage", 4.0), state, memory))


def test_a_pending_pod_that_fits_is_a_violation() -> None:
    assert _violations(_pending("p", "Unschedulable")) == ["pod p is pending and fits: no room"]


def test_a_pod_may_be_pending_while_it_is_gated() -> None:
    gates = [{"name": "g"}]
    assert not _violations(_pending(f"{GATED}p", "SchedulingGated", schedulingGates=gates))
    assert _violations(_pending(f"{GATED}p", "SchedulingGated"))


def test_a_pod_that_fits_nowhere_must_have_an_unschedulable_condition() -> None:
    assert not _violations(_pending(f"{HUGE}p", "Unschedulable"))
    assert _violations(_pending(f"{HUGE}p")) == [
        f"pod {HUGE}p is pending and its condition gives no reason"
    ]


def test_pods_of_other_schedulers_may_be_pending() -> None:
    assert not _violations(_pending("p", schedulerName="foreign"))


def test_memory_growth_is_limited() -> None:
    assert not _violations(memory=(Memory("a", 110, 180, 60),))
    (violation,) = _violations(memory=(Memory("a", 110, 300, 60),))
    assert violation == "a grew from 110 MiB to 300 MiB in 60 s"


def test_recoveries_are_reported_by_kind() -> None:
    killed = [Disturbance(0.0, KILL_LEADER, "a", recovered_at=after) for after in (3.0, 5.0, None)]
    stopped = Disturbance(0.0, STOP_LEADER, "a")
    found = {each.kind: each for each in recoveries([*killed, stopped])}
    assert (found[KILL_LEADER].times, found[KILL_LEADER].unrecovered) == (3, 1)
    assert (found[KILL_LEADER].median_s, found[KILL_LEADER].max_s) == (4.0, 5.0)
    assert (found[STOP_LEADER].unrecovered, found[STOP_LEADER].max_s) == (1, None)


def test_the_same_seed_draws_the_same_pods_of_all_kinds() -> None:
    first, second = (list(islice(pod_lives(5, "stowage"), 5000)) for _ in range(2))
    assert first == second
    assert any(life.is_foreign for life in first)
    assert any(life.is_made_again and life.deleted_after_s is not None for life in first)
    assert any(life.opens_after_s is not None for life in first)
    assert any(life.name.startswith(HUGE) for life in first)
    with_volumes = [life for life in first if life.needs_more_than_a_node]
    assert with_volumes
    assert all("volumes" in life.manifest["spec"] and not life.is_foreign for life in with_volumes)
    assert {life.manifest["spec"].get("priorityClassName") for life in first} == {
        None,
        "bench-middle",
        "bench-high",
    }
