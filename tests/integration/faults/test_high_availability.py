"""Two replicas and one lease: only the leader writes, whatever faults occur."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from simcluster.faults.faults import FaultRule
from simcluster.tests.support.api_client import PODS
from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S
from tests.support.integration.replicas import (
    ADMIN_TOKEN,
    WRITES,
    Replica,
    Replicas,
    replicas_of_a_cluster,
    token_of,
)

LEASE_S, RENEW_S, RETRY_S = 8.0, 6.0, 0.2
"""Long enough for a leader on a busy machine to renew in time."""
QUICK = (
    f"--leader-elect-lease-duration={LEASE_S}s",
    f"--leader-elect-renew-deadline={RENEW_S}s",
    f"--leader-elect-retry-period={RETRY_S}s",
)
ASSIGNED_PODS_WATCH = "watch=true.*nodeName(!|%21)"


@pytest.fixture
async def replicas(tmp_path: Path) -> AsyncIterator[Replicas]:
    async with replicas_of_a_cluster(tmp_path) as replicas:
        yield replicas


async def _pair(replicas: Replicas, *flags: str) -> tuple[Replica, Replica]:
    """A leader that has bound a pod, and a standby."""
    both = [await replicas.start(name, *flags) for name in ("replica-a", "replica-b")]
    await replicas.create(["first"])
    await replicas.are_bound(["first"])
    leader = await replicas.leader()
    return leader, next(replica for replica in both if replica is not leader)


def _no_pod_was_bound_twice(replicas: Replicas) -> bool:
    return set(Counter(done.name for done in replicas.bindings()).values()) == {1}


async def test_a_standby_takes_over_when_the_lease_of_a_killed_leader_expires(
    replicas: Replicas,
) -> None:
    leader, standby = await _pair(replicas, *QUICK)
    names = [f"p{number}" for number in range(30)]
    await replicas.create(names[:10])
    await replicas.are_bound(names[:10])
    assert {done.who for done in replicas.bindings()} == {leader.name}
    leader.signal(signal.SIGKILL)
    await replicas.create(names[10:])
    await replicas.are_bound(names)
    taken_over_at = next(done.at for done in replicas.bindings() if done.who == standby.name)
    renewed_at = [done.at for done in replicas.leases() if done.who == leader.name][-1]
    assert taken_over_at - renewed_at >= LEASE_S
    assert _no_pod_was_bound_twice(replicas)


async def test_a_leader_stopped_for_longer_than_its_lease_writes_nothing_when_resumed(
    replicas: Replicas,
) -> None:
    leader, standby = await _pair(replicas, *QUICK)
    names = [f"p{number}" for number in range(100)]
    creating = asyncio.create_task(replicas.create(names))
    await replicas.are_bound(names[:5])
    leader.signal(signal.SIGSTOP)
    await creating
    # The leader may have bound all of them before it was stopped; this one is left for the standby.
    await replicas.create(["last"])
    await replicas.are_bound([*names, "last"])
    assert replicas.bindings()[-1].who == standby.name
    resumed_at = time.monotonic()
    leader.signal(signal.SIGCONT)
    # Requests sent before the stop may still arrive; later ones must not.
    assert await leader.exit_code() == 1
    written = [
        done
        for done in replicas.done
        if done.who == leader.name and done.verb in WRITES and done.at > resumed_at
    ]
    assert written == []
    assert _no_pod_was_bound_twice(replicas)


async def test_a_terminated_leader_releases_its_lease_at_once(replicas: Replicas) -> None:
    flags = (
        f"--leader-elect-lease-duration={10 * WAIT_TIMEOUT_S}s",
        f"--leader-elect-renew-deadline={5 * WAIT_TIMEOUT_S}s",
        f"--leader-elect-retry-period={RETRY_S}s",
        "-v=10",
    )
    leader, standby = await _pair(replicas, *flags)
    leader.signal(signal.SIGUSR2)
    for line in ('"cache compared"', '"state validated"'):
        await replicas.eventually(partial(_logs, leader, line))
    leader.signal(signal.SIGTERM)
    assert await leader.exit_code() == 0
    await replicas.create(["second"])
    # Without the release the lease would last ten times longer than this waits.
    await replicas.are_bound(["second"])
    assert replicas.bindings()[-1].who == standby.name
    _check_log(leader)


async def _logs(replica: Replica, text: str) -> bool:
    return text in replica.log.read_text()


def _check_log(replica: Replica) -> None:
    """The log of a replica is JSON, has its decisions and contains no token."""
    text = replica.log.read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    (attempt,) = [line for line in lines if line["event"] == "scheduled"]
    assert attempt["pod"] == "default/first"
    assert {line["node"] for line in lines if line["event"] == "Dump of cached NodeInfo"} == {
        "n1",
        "n2",
    }
    assert [line for line in lines if line["event"] in ("Cache mismatch", "problem")] == []
    assert any(line["level"] == "debug" for line in lines)
    for token in (token_of(replica.name), ADMIN_TOKEN):
        assert token not in text


async def test_a_leader_that_cannot_renew_stops_binding_before_its_lease_expires(
    replicas: Replicas,
) -> None:
    lease_s = 4 * LEASE_S
    leader = await replicas.start("replica-a", *QUICK, f"--leader-elect-lease-duration={lease_s}s")
    names = [f"p{number}" for number in range(2000)]
    creating = asyncio.create_task(replicas.create(names))
    await replicas.are_bound(names[:5])
    replicas.cluster.faults.add(FaultRule("", "/leases", times=1000, hang_s=10 * WAIT_TIMEOUT_S))
    hung_at, renewed_at = time.monotonic(), replicas.leases()[-1].at
    assert await leader.exit_code() == 1
    creating.cancel()
    # The leader bound pods after the fault began, but none after its lease expired.
    late = [done for done in replicas.bindings() if done.at > renewed_at + lease_s]
    assert late == []
    assert replicas.bindings()[-1].at > hung_at
    assert _no_pod_was_bound_twice(replicas)


async def test_a_standby_whose_watches_hang_does_not_overcommit_when_it_takes_over(
    replicas: Replicas,
) -> None:
    leader = await replicas.start("replica-a", *QUICK)
    await _create_large(replicas, "seen")
    await replicas.are_bound(["seen"])
    faults = replicas.cluster.faults
    faults.add(FaultRule("GET", ASSIGNED_PODS_WATCH, times=100, hang_s=10 * WAIT_TIMEOUT_S))
    standby = await replicas.start("replica-b", *QUICK)
    await replicas.eventually(lambda: _has_hit(replicas))
    # Both nodes are full now; the standby has seen only one of the pods.
    await _create_large(replicas, "unseen")
    await replicas.are_bound(["unseen"])
    assert {done.who for done in replicas.bindings()} == {leader.name}
    leader.signal(signal.SIGKILL)
    await _create_large(replicas, "late")
    await replicas.eventually(lambda: _logs(standby, '"became leader"'))
    await replicas.eventually(lambda: _is_decided(replicas, "late"))
    late = (await replicas.api.get(f"{PODS}/late")).body
    assert "nodeName" not in late["spec"]
    assert "2 Insufficient cpu" in late["status"]["conditions"][0]["message"]
    lists = Counter(
        done.resource for done in replicas.done if (done.who, done.verb) == (standby.name, "list")
    )
    # The watch of pending pods lists pods, too.
    assert (lists["nodes"], lists["namespaces"]) == (2, 1)
    # It lists them once more if its watch was silent for long.
    assert lists["pods"] in (3, 4)


async def _create_large(replicas: Replicas, name: str) -> None:
    """Create a pod of which only one fits on a node."""
    resources = {"requests": {"cpu": "6"}}
    container = {"name": "c", "image": "registry.k8s.io/pause:3.10", "resources": resources}
    spec = {"schedulerName": "stowage", "containers": [container]}
    await replicas.api.post(PODS, {"metadata": {"name": name}, "spec": spec})


async def _has_hit(replicas: Replicas) -> bool:
    return replicas.cluster.faults.hits > 0


async def _is_decided(replicas: Replicas, name: str) -> bool:
    """Whether a pod has a PodScheduled condition."""
    status = (await replicas.api.get(f"{PODS}/{name}")).body["status"]
    return any(condition["type"] == "PodScheduled" for condition in status.get("conditions", []))
