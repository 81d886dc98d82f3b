"""Random faults of the API server and random changes of its objects."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

from simcluster import FaultRule
from tests.support.integration.full_cluster import (
    BINDINGS,
    LISTS,
    NUM_NODES,
    NUM_PODS,
    WATCHES,
    FullCluster,
    small_pod,
)

Json = dict[str, Any]


class RandomFaults:
    """Injects random faults into a full cluster, and changes its objects, for a while."""

    def __init__(self, cluster: FullCluster, seed: int) -> None:
        self._cluster = cluster
        self._random = Random(seed)
        self._absence: asyncio.Task[None] | None = None
        self._missing: list[int] = []

    async def run(self, seconds: float) -> None:
        """Inject faults until the time is up, then undo the lasting ones."""
        actions = (
            self._fail_requests,
            self._fail_requests,
            self._fail_requests,
            self._cluster.drop_watches,
            self._cluster.forget_history,
            self._go_away,
            self._delete_pod,
            self._delete_pod,
            self._replace_pod,
            self._bind_elsewhere,
            self._create_pod,
            self._create_pod,
            self._toggle_node,
        )
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + seconds
        while loop.time() < ends_at:
            self._random.choice(actions)()
            await asyncio.sleep(self._random.uniform(0.0, 0.1))
        await self._undo()

    async def _undo(self) -> None:
        self._cluster.cluster.faults.clear()
        if self._absence is not None:
            await self._absence
        for number in self._missing:
            self._cluster.add_node(number)

    def _fail_requests(self) -> None:
        pick = self._random.choice
        method, path = pick(
            (
                ("POST", BINDINGS),
                ("POST", BINDINGS),
                ("PATCH", "/status$"),
                ("POST", "/events$"),
                ("GET", LISTS),
                ("GET", WATCHES),
                ("GET", "/pods/p"),
                ("", ""),
            )
        )
        rule = FaultRule(method, path, times=self._random.randint(1, 15))
        harm = pick(("status", "status", "dropped", "slow", "hangs"))
        if harm == "status":
            rule.status = pick((403, 409, 410, 429, 500, 503, 504))
            rule.retry_after_s = pick((0, 0, 1))
        elif harm == "dropped":
            rule.is_dropped = True
        elif harm == "slow":
            rule.delay_s = self._random.uniform(0.0, 0.3)
        else:
            rule.hang_s = 30.0
        # A server never applies a request that it rejects.
        may_have_acted = harm in ("dropped", "hangs") or rule.status >= 500
        rule.is_applied = may_have_acted and method in ("POST", "PATCH") and pick((True, False))
        self._cluster.fail(rule)

    def _go_away(self) -> None:
        if self._absence is None or self._absence.done():
            seconds = self._random.uniform(0.0, 0.5)
            self._absence = asyncio.create_task(self._cluster.cluster.server.be_away(seconds))

    def _some_pod(self) -> Json | None:
        pods = list(self._cluster.auditor.pods.values())
        return self._random.choice(pods) if pods else None

    def _delete_pod(self) -> None:
        pod = self._some_pod()
        if pod is not None:
            self._cluster.delete(pod["metadata"]["name"], self._random.choice((0, 0, 30)))

    def _replace_pod(self) -> None:
        pod = self._some_pod()
        if pod is not None:
            name = pod["metadata"]["name"]
            self._cluster.delete(name)
            self._cluster.create(small_pod(name))

    def _bind_elsewhere(self) -> None:
        """Let another scheduler bind a pod without requests, which cannot overcommit a node."""
        name = self._cluster.fill(1, cpu="")[0]
        self._cluster.bind_elsewhere(name, f"n{self._random.randrange(NUM_NODES)}")

    def _create_pod(self) -> None:
        if len(self._cluster.auditor.pods) <= NUM_PODS - 8:
            self._cluster.fill(
                self._random.randint(1, 8), self._random.choice(("500m", "500m", ""))
            )

    def _toggle_node(self) -> None:
        if self._missing:
            self._cluster.add_node(self._missing.pop(), disk=self._random.choice(("ssd", "hdd")))
        else:
            number = self._random.randrange(NUM_NODES)
            self._missing.append(number)
            self._cluster.delete_node(number)
