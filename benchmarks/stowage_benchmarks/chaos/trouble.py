"""Carries out the fault plan of `stowage bench chaos`, each step at its time."""

from __future__ import annotations

import asyncio
import resource
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

import msgspec

from simcluster.harness.apply import create
from simcluster.kubelet.nodes import bench_node
from stowage.operator.client.api_client import LOST_ANSWER_ERRORS, ApiClient
from stowage_benchmarks.chaos import plan as kinds
from stowage_benchmarks.chaos.ledger import Ledger
from stowage_benchmarks.chaos.load import others_may_be_faster
from stowage_benchmarks.chaos.one_way import TO_REPLICA, TO_SERVER, Ways
from stowage_benchmarks.chaos.plan import Plan, Step
from stowage_benchmarks.chaos.replicas import CONFIG_MAP, Replicas
from stowage_benchmarks.workloads import Json

FAULTS = "/stowage/faults"
_RETRY_S = 0.1
_NAMESPACE, _NAME = CONFIG_MAP.split("/")
_CONFIG_MAPS = f"/api/v1/namespaces/{_NAMESPACE}/configmaps"
NO_LEADER_TIMEOUT_S = 15.0
_BINDING_WITHIN_S = 5.0
_PEACE_FACTOR = 30.0
_SETTLED_S = 6.0
_DAY_S = 86_400
_HUNG_BINDING = {
    "method": "POST",
    "path": "/binding$",
    "is_applied": True,
    "hang_s": 60.0,
    "times": 3,
    "lasts_s": _BINDING_WITHIN_S,
    "name": "binding: applied, server gone before it answers",
}

_LEADER_CHANGE: tuple[Json, ...] = (
    *(
        {"method": method, "rate": 0.25, "status": 500, "is_applied": is_applied}
        for method in ("POST", "PUT", "PATCH")
        for is_applied in (True, False)
    ),
    {},
)
_RESTORE_S = 0.5
_BUMP = 1_000_000
_MAX_ROOM = 16 * 1024 * 1024
"""Address space that a process may have beyond what it uses, so that it soon needs more."""

_CONFIGURATION = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
podInitialBackoffSeconds: 1
podMaxBackoffSeconds: {max_backoff_s}
profiles:
- schedulerName: {scheduler_name}
  plugins:
    score:
      disabled: [{{name: NodeResourcesFit}}]
      enabled: [{{name: NodeResourcesFit, weight: {weight}}}]
"""


def config_map(scheduler_name: str, number: int) -> Json:
    """A configuration with weights and backoffs that depend on the number."""
    text = _CONFIGURATION.format(
        scheduler_name=scheduler_name, weight=1 + number % 5, max_backoff_s=2 + number % 3
    )
    return {"metadata": {"name": _NAME}, "data": {"config.yaml": text}}


async def create_config_map(calm: ApiClient, scheduler_name: str) -> None:
    """Create the configuration the replicas start with."""
    body = msgspec.json.encode(config_map(scheduler_name, 0))
    await calm.post(_CONFIG_MAPS, body)


class Trouble:
    """Injects faults.

    Args:
        calm: Client of the API server without faults.
        faulty: The administrator's client of the faulty API server, which takes fault rules.
        replicas: The replicas to kill and stop.
        ledger: Knows the leader.
        ways: From the replicas to the API server.

    Attributes:
        done: How often each kind was injected; 0 where it found no target.
    """

    def __init__(
        self,
        calm: ApiClient,
        faulty: ApiClient,
        replicas: Replicas,
        ledger: Ledger,
        ways: Ways,
    ) -> None:
        self.done: Counter[str] = Counter()
        self._calm = calm
        self._faulty = faulty
        self._replicas = replicas
        self._ledger = ledger
        self._ways = ways
        self._scheduler_name = ledger.scheduler_name
        self._absent_nodes: set[str] = set()
        self._absence = asyncio.Lock()
        # No replica is out of reach while the store is restored.
        self._isolation = asyncio.Lock()
        self._carriers: dict[str, Callable[[Step], Awaitable[bool]]] = {
            kinds.API_FAULT: self._fail_requests,
            kinds.KILL_LEADER: self._kill_leader,
            kinds.STOP_LEADER: self._stop_leader,
            kinds.RETIRE_LEADER: self._retire_leader,
            kinds.KILL_STANDBY: self._kill_standby,
            kinds.AWAY: self._go_away,
            kinds.AWAY_LONG: self._go_away,
            kinds.AWAY_IN_BINDING: self._go_away_in_binding,
            kinds.RESTART_FORGETTING: self._restart_forgetting,
            kinds.DROP_WATCHES: self._drop_watches,
            kinds.FORGET_HISTORY: self._forget_history,
            kinds.EDIT_CONFIG: self._edit_configuration,
            kinds.BREAK_CONFIG: self._break_configuration,
            kinds.CYCLE_NODE: self._cycle_node,
            kinds.JUMP_CLOCK: self._jump_clock,
            kinds.STORE_SILENT: self._silence_store,
            kinds.RESTORE: self._restore,
            kinds.RESTORE_BUMPED: self._restore,
            kinds.CUT_REQUESTS: self._cut_off,
            kinds.CUT_ANSWERS: self._cut_off,
            kinds.FILES_FULL: self._limit_leader,
            kinds.MEMORY_FULL: self._limit_leader,
            kinds.KILL_IN_PEACE: self._end_leader_in_peace,
            kinds.RETIRE_IN_PEACE: self._end_leader_in_peace,
        }

    async def carry_out(self, plan: Plan) -> None:
        """Inject every fault at its time; returns when all are over.

        Raises:
            ApiError: the calm API server refused a request.
        """
        started_at = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for step in plan.in_storm:
                await asyncio.sleep(max(0.0, started_at + step.at_s - time.monotonic()))
                group.create_task(self.do(step))
            await asyncio.sleep(max(0.0, started_at + plan.duration_s - time.monotonic()))
        await self._patiently(lambda: self._faulty.delete(FAULTS, b"{}"))
        for step in plan.in_peace:
            await self.do(step)

    async def hits(self) -> dict[str, int]:
        """How many requests each API fault has hit."""
        answer = msgspec.json.decode(await self._patiently(lambda: self._faulty.get(FAULTS)))
        hits: dict[str, int] = answer["hits_by_name"]
        return hits

    async def do(self, step: Step) -> None:
        """Do one step and count it if it had an effect."""
        # Steps overlap: read the count only after the step has ended.
        was_done = await self._carriers[step.kind](step)
        self.done[step.kind] += was_done

    async def _patiently(self, ask: Callable[[], Awaitable[bytes]]) -> bytes:
        """Repeat a request until it is answered: the server may be down because of a fault."""
        while True:
            with suppress(*LOST_ANSWER_ERRORS):
                return await ask()
            await asyncio.sleep(_RETRY_S)

    async def _ask(self, action: str, **fields: float) -> None:
        body = msgspec.json.encode(fields)
        await self._patiently(lambda: self._faulty.post(f"{FAULTS}/{action}", body))

    async def _add_rule(self, rule: Json | None) -> None:
        body = msgspec.json.encode(rule)
        await self._patiently(lambda: self._faulty.post(FAULTS, body))

    async def _fail_requests(self, step: Step) -> bool:
        await self._add_rule(step.rule)
        # Lists and watches are rare: provoke some, so that the fault hits one.
        if step.request == kinds.LIST:
            await self._forget_history(step)
        elif step.request == kinds.WATCH:
            await self._drop_watches(step)
        await asyncio.sleep(step.seconds)
        return True

    async def _leader(self) -> str:
        """The replica that leads, or is about to; empty if nobody is."""
        deadline = time.monotonic() + NO_LEADER_TIMEOUT_S
        while time.monotonic() < deadline:
            leader = self._ledger.holding_replica
            if leader in self._replicas.running:
                return leader
            await asyncio.sleep(_RETRY_S)
        return ""

    async def _kill_leader(self, step: Step) -> bool:
        return self._end(await self._leader(), self._replicas.kill, step)

    async def _retire_leader(self, step: Step) -> bool:
        return self._end(await self._leader(), self._replicas.retire, step)

    def _end(self, leader: str, end: Callable[[str], bool], step: Step) -> bool:
        """End the leader and record it; False if there was none."""
        if not (leader and end(leader)):
            return False
        self._ledger.disturbed(time.monotonic(), step.kind)
        return True

    async def _end_leader_in_peace(self, step: Step) -> bool:
        """Kill or retire a leader without other faults, and time the takeover."""
        times, is_killed = self._replicas.times, step.kind == kinds.KILL_IN_PEACE
        peace_within_s = times.takeover_s * _PEACE_FACTOR
        if not await self._is_within(peace_within_s, self._is_at_peace):
            self._ledger.violations.append(
                f"no steady binding {peace_within_s:g} s after the last fault"
            )
            return False
        await asyncio.sleep(step.number % 1000 / 1000 * times.retry_s * 2)
        leader = self._ledger.holding_replica
        limit_s = times.retry_s + times.takeover_s + (times.lease_s if is_killed else 0.0)
        waits = self._replicas.cpu_waits()
        ended = self._ledger.disturbed(time.monotonic(), step.kind, limit_s)
        end = self._replicas.kill if is_killed else self._replicas.retire
        was_there = end(leader)
        await self._is_within(limit_s * 4, lambda: ended.recovered_at is not None)
        ended.waited_s = waited_in_turn_s(waits, self._replicas.cpu_waits())
        return was_there

    def _is_at_peace(self) -> bool:
        """Whether a leader binds pods and all replicas have had time to become ready."""
        ledger = self._ledger
        binds = time.monotonic() - ledger.last_bound_at < 1.0
        leads = ledger.holding_replica in self._replicas.running
        return binds and leads and self._replicas.all_run_for(_SETTLED_S)

    async def _is_within(self, seconds: float, condition: Callable[[], bool]) -> bool:
        deadline = time.monotonic() + seconds
        while not condition() and time.monotonic() < deadline:  # noqa: ASYNC110 - the ledger has no event for it
            await asyncio.sleep(_RETRY_S)
        return condition()

    async def _stop_leader(self, step: Step) -> bool:
        async with self._isolation:
            leader = await self._leader()
            if not (leader and self._replicas.can_be_stopped(leader)):
                return False
            self._ledger.disturbed(time.monotonic(), step.kind)
            await self._replicas.stop_for(leader, step.seconds)
        return True

    async def _kill_standby(self, step: Step) -> bool:
        leader = await self._leader()
        others = [name for name in self._replicas.running if name != leader]
        return bool(others) and self._replicas.kill(others[step.number % len(others)])

    async def _go_away(self, step: Step) -> bool:
        async with self._absence:
            await self._ask("away", seconds=step.seconds)
            await asyncio.sleep(step.seconds)
        return True

    async def _go_away_in_binding(self, step: Step) -> bool:
        body, name = msgspec.json.encode(_HUNG_BINDING), str(_HUNG_BINDING["name"])
        before = (await self.hits()).get(name, 0)
        await self._patiently(lambda: self._faulty.post(FAULTS, body))
        deadline = time.monotonic() + _BINDING_WITHIN_S
        while not (is_hung := (await self.hits()).get(name, 0) > before):
            if time.monotonic() > deadline:
                break
            await asyncio.sleep(_RETRY_S)
        await self._go_away(step)
        return is_hung

    async def _silence_store(self, step: Step) -> bool:
        """All requests wait; then some writes fail, and some of these have been made."""
        for fault in _LEADER_CHANGE:
            rule = {**fault, "delay_s": 1.0, "lasts_s": 1.0, "times": 1_000_000, "name": step.kind}
            await self._add_rule(rule)
        await asyncio.sleep(1.0)
        return True

    async def _restore(self, step: Step) -> bool:
        """Back up now, and go back to the backup some seconds later."""
        async with self._absence, self._isolation:
            await self._ask("back-up")
            await asyncio.sleep(step.seconds)
            names = set(self._ledger.node_names)
            bump = _BUMP if step.kind == kinds.RESTORE_BUMPED else 0
            await self._ask("restore", seconds=_RESTORE_S, bump=bump)
            # Until the Lease expires, every replica that reads it notices the restore.
            await asyncio.sleep(_RESTORE_S + self._replicas.times.lease_s)
            for name in names - self._ledger.node_names - self._absent_nodes:
                await self._add_node(name)
        return True

    async def _cut_off(self, step: Step) -> bool:
        """Cut the leader off from the server, in one direction."""
        direction = TO_SERVER if step.kind == kinds.CUT_REQUESTS else TO_REPLICA
        async with self._isolation:
            leader = await self._leader()
            if not leader:
                return False
            self._ledger.disturbed(time.monotonic(), step.kind)
            await self._ways.cut_for(leader, direction, step.seconds)
        return True

    async def _limit_leader(self, step: Step) -> bool:
        leader = await self._leader()
        if step.kind == kinds.FILES_FULL:
            return await self._replicas.limit_for(leader, step.seconds, resource.RLIMIT_FSIZE, 1)
        room = step.number % _MAX_ROOM
        return await self._replicas.limit_for(leader, step.seconds, resource.RLIMIT_AS, room)

    async def _jump_clock(self, step: Step) -> bool:
        """Set the wall clock of a replica forward or back by up to a day."""
        running = self._replicas.running
        if running:
            offset_s = step.number % (2 * _DAY_S) - _DAY_S
            self._replicas.set_clock(running[step.number % len(running)], offset_s)
        return bool(running)

    async def _drop_watches(self, _step: Step) -> bool:
        await self._ask("drop-watches")
        return True

    async def _forget_history(self, step: Step) -> bool:
        await self._ask("forget-history")
        return await self._drop_watches(step)

    async def _restart_forgetting(self, step: Step) -> bool:
        await self._ask("forget-history")
        return await self._go_away(step)

    async def _edit_configuration(self, step: Step) -> bool:
        await self._patch_configuration(config_map(self._scheduler_name, step.number)["data"])
        return True

    async def _break_configuration(self, step: Step) -> bool:
        good = config_map(self._scheduler_name, step.number)["data"]
        bad = {name: text.replace("weight: ", "weight: -") for name, text in good.items()}
        await self._patch_configuration(bad)
        await asyncio.sleep(step.seconds)
        await self._patch_configuration(good)
        return True

    async def _patch_configuration(self, data: Json) -> None:
        body = msgspec.json.encode({"data": data})
        await self._calm.patch(f"{_CONFIG_MAPS}/{_NAME}", body)

    async def _cycle_node(self, step: Step) -> bool:
        names = sorted(self._ledger.node_names - self._absent_nodes)
        name = names[step.number % len(names)]
        self._absent_nodes.add(name)
        try:
            # A restore may have taken it away, or brought it back.
            with others_may_be_faster():
                await self._calm.delete(f"/api/v1/nodes/{name}", b"{}")
            await asyncio.sleep(step.seconds)
            await self._add_node(name)
        finally:
            self._absent_nodes.discard(name)
        return True

    async def _add_node(self, name: str) -> None:
        with others_may_be_faster():
            await create(self._calm, bench_node(int(name.rpartition("-")[2])))


def waited_in_turn_s(before: Mapping[int, float], after: Mapping[int, float]) -> float:
    """Seconds that API server and new leader waited for a CPU, one after the other, at most.

    Nobody knows before which replica will lead, so the two that waited longest count.

    Args:
        before: Seconds since the start of each process, by PID.
        after: The same later; without processes that have ended.
    """
    waited = [wait_s - before[pid] for pid, wait_s in after.items() if pid in before]
    return sum(sorted(waited)[-2:])
