"""Each check of the chaos benchmark can fail, and only faults that took effect are counted."""

from __future__ import annotations

import asyncio
import resource
import sys
import time
from pathlib import Path
from typing import Any, cast

import pytest

from simcluster.harness.audit import ClusterState
from simcluster.harness.processes import ChildProcesses
from stowage.operator.client.api_client import ApiClient
from stowage_benchmarks.chaos import plan as chaos_plan
from stowage_benchmarks.chaos import replicas as chaos_replicas
from stowage_benchmarks.chaos import trouble as chaos_trouble
from stowage_benchmarks.chaos.history import PodChange
from stowage_benchmarks.chaos.judge import ChaosOptions, Judge, Storm, late
from stowage_benchmarks.chaos.ledger import Ledger
from stowage_benchmarks.chaos.one_way import Ways
from stowage_benchmarks.chaos.plan import Step, draw_plan
from stowage_benchmarks.chaos.pods import GATED, HUGE
from stowage_benchmarks.chaos.replicas import LeaseTimes, Life, Replicas, compare_cache
from stowage_benchmarks.chaos.result import Machine, has_grown, this_machine
from stowage_benchmarks.chaos.trouble import Trouble
from tests.support.fake_api import FakeApiClient

ANSWERS = """
import signal, sys, time
signal.signal(signal.SIGUSR2, lambda *_: print(sys.argv[1], flush=True))
print('{"event": "serving"}', flush=True)
while True:
    time.sleep(0.01)
"""
COMPARED = '{"event": "cache compared", "nodes": 1, "pods": 0}'
MISMATCH = '{"event": "Cache mismatch", "missingPods": ["default/p"]}'


async def _mismatches(folder: Path, says: str) -> list[str]:
    with ChildProcesses(folder) as processes:
        child = processes.start("a", [sys.executable, "-c", ANSWERS, says])
        return await compare_cache(Life("replica-a", child, time.monotonic()))


async def test_a_cache_mismatch_is_reported(tmp_path: Path) -> None:
    assert await _mismatches(tmp_path, COMPARED) == []
    (mismatch,) = await _mismatches(tmp_path, f"{MISMATCH}\n{COMPARED}")
    assert mismatch.startswith("replica-a: ")
    assert "default/p" in mismatch


async def test_a_replica_that_does_not_compare_its_cache_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chaos_replicas, "COMPARE_WITHIN_S", 0.5)
    assert await _mismatches(tmp_path, "{}") == ["replica-a did not compare its cache within 0.5 s"]


def _judge(folder: Path, **options: Any) -> tuple[Judge, Ledger, Replicas]:
    given = {
        "minutes": 1.0,
        "recovery_limit_s": 1.0,
        "seed": 1,
        "num_nodes": 20,
        "pods_per_s": 1.0,
        **options,
    }
    ledger = Ledger("stowage", 4.0)
    replicas = Replicas(ChildProcesses(folder), folder, LeaseTimes())
    return Judge(ChaosOptions(**given), ledger, replicas), ledger, replicas


def _waiting(name: str) -> PodChange:
    return PodChange(0.0, "ADDED", "", f"uid-{name}", name, 100, "stowage")


async def test_a_schedulable_pod_that_waits_too_long_is_reported(tmp_path: Path) -> None:
    judge, ledger, _ = _judge(tmp_path, recovery_limit_s=0.1)
    ledger.take([_waiting(f"{GATED}1"), _waiting(f"{HUGE}2")])
    assert await judge.recovery() is not None
    ledger.take([_waiting("p")])
    assert await judge.recovery() is None


async def test_the_result_contains_every_violation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Late pods, cache mismatches, memory growth, and the violations of the ledger."""
    judge, ledger, replicas = _judge(tmp_path, recovery_limit_s=0.0)
    ledger.take([_waiting("p")])
    ledger.violations.append("a promise was broken")
    fake = FakeApiClient()

    async def mismatches() -> list[str]:
        return ["replica-a: mismatches"]

    async def empty_state(_client: ApiClient) -> ClusterState:
        return ClusterState([], [])

    async def binds_none(_client: ApiClient) -> bool:
        return False

    monkeypatch.setattr(replicas, "cache_mismatches", mismatches)
    monkeypatch.setattr(replicas, "memory_mib", lambda: 900.0)
    monkeypatch.setattr(judge, "settled", empty_state)
    monkeypatch.setattr(judge, "binds_new_pods", binds_none)
    storm = _storm(this_machine())
    result = await judge.judge(cast("ApiClient", fake), storm, {"binding: 409": 3})
    assert result.violations == [
        late(0.0),
        "replica-a: mismatches",
        "a promise was broken",
        "memory rose from 100 to 900 MiB",
    ]


def _storm(machine: Machine) -> Storm:
    return Storm(machine, "digest", {}, 1.0, 100.0)


def test_memory_growth_above_the_limit_is_detected() -> None:
    assert not has_grown(100.0, 110.0)
    assert has_grown(100.0, 900.0)


async def test_a_planned_fault_that_hit_no_request_is_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge, _, replicas = _judge(tmp_path)

    async def well(*_args: Any) -> Any:
        return ClusterState([], [])

    async def none() -> list[str]:
        return []

    monkeypatch.setattr(judge, "settled", well)
    monkeypatch.setattr(judge, "binds_new_pods", well)
    monkeypatch.setattr(replicas, "cache_mismatches", none)
    client = cast("ApiClient", FakeApiClient())
    result = await judge.judge(client, _storm(this_machine()), {"binding: 409": 3})
    assert result.requests_hit["binding: 409"] == 3
    planned = draw_plan(60.0, 1, LeaseTimes().lease_s).rule_names
    assert set(planned) <= set(result.requests_hit)
    assert 0 in result.requests_hit.values()


@pytest.mark.parametrize(
    "kind",
    [
        chaos_plan.KILL_LEADER,
        chaos_plan.STOP_LEADER,
        chaos_plan.RETIRE_LEADER,
        chaos_plan.KILL_STANDBY,
        chaos_plan.JUMP_CLOCK,
        chaos_plan.CUT_REQUESTS,
        chaos_plan.CUT_ANSWERS,
        chaos_plan.FILES_FULL,
        chaos_plan.MEMORY_FULL,
    ],
)
async def test_a_fault_without_target_is_not_counted(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chaos_trouble, "NO_LEADER_TIMEOUT_S", 0.0)
    ledger = Ledger("stowage", 4.0)
    replicas = Replicas(ChildProcesses(tmp_path), tmp_path, LeaseTimes())
    client = cast("ApiClient", FakeApiClient())
    trouble = Trouble(client, client, replicas, ledger, Ways())
    await trouble.do(Step(0.0, kind))
    assert trouble.done == {kind: 0}
    assert ledger.disturbances == []


async def test_faults_of_overlapping_steps_are_all_counted(tmp_path: Path) -> None:
    client = cast("ApiClient", FakeApiClient())
    replicas = Replicas(ChildProcesses(tmp_path), tmp_path, LeaseTimes())
    trouble = Trouble(client, client, replicas, Ledger("stowage", 4.0), Ways())
    step = Step(0.0, chaos_plan.DROP_WATCHES)
    await asyncio.gather(*(trouble.do(step) for _ in range(3)))
    assert trouble.done == {chaos_plan.DROP_WATCHES: 3}


@pytest.mark.parametrize(
    "kind", [resource.RLIMIT_FSIZE, resource.RLIMIT_AS], ids=["files", "memory"]
)
async def test_a_replica_is_limited_for_a_while(kind: int, tmp_path: Path) -> None:
    with ChildProcesses(tmp_path) as processes:
        child = processes.start("a", [sys.executable, "-c", ANSWERS, COMPARED])
        while not child.log.stat().st_size:  # noqa: ASYNC110 - a file
            await asyncio.sleep(0.01)
        life = Life("replica-a", child, time.monotonic())
        before = resource.prlimit(child.pid, kind)
        limiting = asyncio.create_task(chaos_replicas.limit_for(life, 0.5, kind, 1))
        while (now := resource.prlimit(child.pid, kind)) == before:  # noqa: ASYNC110 - the kernel
            await asyncio.sleep(0.01)
        assert 0 < now[0] < 2**40
        overlapping = asyncio.create_task(chaos_replicas.limit_for(life, 0.6, kind, 1))
        assert await limiting
        assert await overlapping
        assert resource.prlimit(child.pid, kind) == before
