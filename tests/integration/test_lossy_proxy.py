"""Replicas behind a proxy that loses and delays what passes, judged by the server's audit."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from pathlib import Path

import pytest

from simcluster.kinds.resources import PODS
from tests.support.integration.lossy_proxy import Rates, lossy_proxy
from tests.support.integration.replicas import WRITES, replicas_of_a_cluster

LEASE_S = 3.0
QUICK = (
    f"--leader-elect-lease-duration={LEASE_S}s",
    "--leader-elect-renew-deadline=2s",
    "--leader-elect-retry-period=500ms",
)
NAMES = [f"p{number}" for number in range(200)]


@pytest.mark.parametrize("seed", [1, 2])
async def test_every_pod_is_bound_by_one_request(tmp_path: Path, seed: int) -> None:
    """Though one answer of four is lost, the leader is killed, and the server goes away."""
    async with (
        replicas_of_a_cluster(tmp_path) as replicas,
        lossy_proxy(replicas.cluster.url, seed) as proxy,
    ):
        replicas.server = proxy.url
        nodes: dict[str, list[str]] = {}
        replicas.cluster.store.subscribe(
            PODS.stored_in,
            lambda change: nodes.setdefault(change.current.obj["metadata"]["uid"], []).append(
                change.current.obj["spec"].get("nodeName", "")
            ),
        )
        for name in ("replica-a", "replica-b"):
            await replicas.start(name, *QUICK)
        await replicas.create(["first"])
        await replicas.are_bound(["first"])
        leader = await replicas.leader()
        proxy.rates = Rates(longest_delay_s=0.5)
        await replicas.create(NAMES[:100])
        await proxy.be_away(0.3)
        leader.signal(signal.SIGKILL)
        await replicas.create(NAMES[100:])
        await asyncio.sleep(LEASE_S)
        proxy.rates = None
        await replicas.are_bound(NAMES)
    posted = Counter(done.name for done in replicas.bindings())
    assert set(posted) == {"first", *NAMES}
    assert set(posted.values()) == {1}
    assert all(len(set(filter(None, seen))) == 1 for seen in nodes.values())
    assert proxy.hits["binding lost"] > 0
    writers = [done.who for done in replicas.done if done.verb in WRITES]
    assert set(writers) == {"replica-a", "replica-b"}
