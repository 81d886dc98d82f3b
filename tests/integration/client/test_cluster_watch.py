"""What `stowage console` and the observers follow: a cluster by the context of a kubeconfig."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from simcluster.tests.support.timeouts import wait_until
from stowage.api.events import NodeSeen, PodGroupsServed
from stowage.operator import cluster_watch
from stowage.operator.client.connection import Connection, connect
from stowage.operator.clock import Clock
from stowage.operator.cluster_watch import watch_cluster
from tests.support.integration.full_cluster import full_cluster


async def test_the_context_that_is_asked_for_is_watched_and_not_the_current_one(
    tmp_path: Path,
) -> None:
    async with full_cluster(tmp_path / "kubeconfig", num_nodes=2) as full:
        config = yaml.safe_load(full.kubeconfig.read_text())
        asked_for = config["current-context"]
        config["current-context"] = "away"
        config["clusters"].append({"name": "away", "cluster": {"server": "http://127.0.0.1:1"}})
        config["contexts"].append({"name": "away", "context": {"cluster": "away", "user": "u"}})
        config["users"].append({"name": "u", "user": {}})
        full.kubeconfig.write_text(yaml.safe_dump(config))
        said: list[str] = []
        async with watch_cluster(str(full.kubeconfig), asked_for, said.append, Clock()) as watch:
            await wait_until(lambda: watch.has_synced)
            events = watch.inbox.drain(1000)
            assert (watch.waiting_kinds, said) == ([], [])
    seen = [each for each in events if isinstance(each, NodeSeen)]
    assert {each.node.metadata.name for each in seen} == {"n0", "n1"}
    served = [each.is_served for each in events if isinstance(each, PodGroupsServed)]
    assert served == [False, False]


async def test_the_end_of_a_watch_closes_its_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Connection] = []

    async def connect_and_note(*given: Any, **more: Any) -> Connection:
        opened.append(await connect(*given, **more))
        return opened[-1]

    monkeypatch.setattr(cluster_watch, "connect", connect_and_note)
    async with full_cluster(tmp_path / "kubeconfig", num_nodes=1) as full:
        async with watch_cluster(str(full.kubeconfig), None, print, Clock()) as watch:
            await wait_until(lambda: watch.has_synced)
            (connection,) = opened
            assert not connection.session.closed
        assert connection.session.closed
