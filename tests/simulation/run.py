"""Simulate one seed and check it."""

from __future__ import annotations

import asyncio
import gc
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import structlog

from tests.simulation.audit import Auditor
from tests.simulation.configurations import describe_text, load_text
from tests.simulation.end_state import cluster_violations, engine_violations
from tests.simulation.engine_faults import engine_faults
from tests.simulation.fault_rates import RECOVERY_S, FaultRates
from tests.simulation.kept_files import KeptFiles
from tests.simulation.loop import ClockStandsStill, VirtualLoop
from tests.simulation.network import Network
from tests.simulation.plan import Emphasis, Plan
from tests.simulation.replica import Recordings
from tests.simulation.server import LEASES, ModelServer

FAIL_OVER_S = 15.0 + 2.0 + 1.0
"""Longest wait after the leader was killed: a lease, a retry period, and the binding itself."""

VOLUME_S = 5.0
"""How long provisioning a volume may take without faults."""

DETACHED_S = 5.0
"""Longest wait of a pod after a volume is detached."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of one seed.

    Attributes:
        violations: The violated invariants, one sentence each.
        faults: How often each fault and each action happened.
        num_bound: Number of pods that the scheduler bound.
        num_changes: Number of writes in the server's history.
        trace: Actions, then bindings, each in order of time.
        recovery_s: The longest wait of a probe pod, by wave.
    """

    seed: int
    violations: tuple[str, ...]
    faults: Counter[str]
    num_bound: int
    num_changes: int
    trace: tuple[str, ...]
    recovery_s: dict[str, float] = field(default_factory=dict)


def simulate(
    seed: int,
    emphasis: Emphasis = Emphasis(),  # noqa: B008 - it is frozen
    recordings: Recordings | None = None,
    files: Path | None = None,
) -> Outcome:
    """Simulate one seed, with emphasis on some faults and actions.

    Args:
        seed: Draws everything.
        emphasis: Actions and faults that are to happen more often.
        recordings: Receives the configuration and the journal of each process.
        files: An empty folder in which the processes record and log their decisions. The files are
            checked. None writes none. It is another life with files: their names take random
            numbers.
    """
    rng = random.Random(seed)
    loop = VirtualLoop()
    problems: list[str] = []
    found: list[str] = []
    loop.set_exception_handler(lambda _loop, context: problems.append(_problem(context)))
    server = ModelServer(loop.time)
    fault_rates = FaultRates()
    auditor = Auditor(server, fault_rates, loop.time)
    network = Network(loop, server, rng, fault_rates, auditor.write_sent)
    plan = Plan(loop, server, network, rng, emphasis)
    kept = None if files is None else KeptFiles(files)
    for replica in plan.replicas:
        replica.recordings, replica.files = recordings, kept
    asyncio.set_event_loop(None)
    with _without_logs(), _without_collector(), engine_faults(problems.append):
        try:
            auditor.extenders = plan.users.extenders
            plan.begin()
            end_state = _EndState(plan, server)
            loop.run_until_complete(plan.run(lambda: found.extend(end_state.violations())))
            found += _late_probes(plan)
            violations = [*auditor.violations, *dict.fromkeys((*problems, *found))]
        except ClockStandsStill as endless_round:
            violations = [*auditor.violations, *problems, str(endless_round)]
            kept = None
        finally:
            _end(loop, network)
    if kept is not None:
        violations.extend(kept.violations(server))
    return Outcome(
        seed,
        tuple(violations),
        network.fault_rates.happened,
        auditor.num_bound,
        len(server.history),
        (*plan.log, *_bindings(server)),
        {wave: max(plan.probes.bound_after(wave).values()) for wave in plan.probes.sent_at},
    )


class _EndState:
    """Checks what must hold once everything has settled, several times in a life."""

    def __init__(self, plan: Plan, server: ModelServer) -> None:
        self._plan = plan
        self._server = server
        self._checked: tuple[object, ...] = ()

    def violations(self) -> Iterator[str]:
        """The violations; of the cluster only if it has changed since the last check."""
        plan, server = self._plan, self._server
        names = [profile.scheduler_name for profile in load_text(plan.users.text).profiles]
        num_changes = sum(change.path != LEASES for change in server.history)
        seen = (num_changes, server.events.total(), *server.served_groups, plan.users.text)
        if seen != self._checked:
            self._checked = seen
            yield from cluster_violations(server, names, plan.users.extenders)
        yield from _replica_violations(plan, server, names)


def _replica_violations(plan: Plan, server: ModelServer, names: list[str]) -> Iterator[str]:
    wanted = describe_text(plan.users.text).hash
    for replica in plan.replicas:
        if replica.engine is None:
            yield f"{replica.process_name} is not running"
            continue
        for violation in engine_violations(server, replica.engine, names):
            yield f"{replica.process_name}: {violation}"
        if replica.configuration_hash != wanted:
            yield f"{replica.process_name} runs {replica.configuration_hash}, not {wanted}"


def _late_probes(plan: Plan) -> Iterator[str]:
    limits = {
        "after the faults": RECOVERY_S,
        "after the leader was killed": FAIL_OVER_S,
        "after a detachment": DETACHED_S,
    }
    for wave in plan.probes.sent_at:
        for name, waited_s in plan.probes.bound_after(wave).items():
            if waited_s < 0:
                yield f"{name} was bound where there was no room for its volume"
            if waited_s > limits[wave] + VOLUME_S * name.endswith("with-volume"):
                yield f"{name}, sent {wave}, was bound after {waited_s:.1f} s"


def _bindings(server: ModelServer) -> Iterator[str]:
    for change in server.history:
        before, after = change.before, change.after
        if after is None or not after.get("spec", {}).get("nodeName"):
            continue
        if before is None or not before["spec"].get("nodeName"):
            uid, node_name = after["metadata"]["uid"], after["spec"]["nodeName"]
            yield f"{change.at:8.3f} {uid} bound to {node_name} by {server.binders.get(uid)}"


def _end(loop: VirtualLoop, network: Network) -> None:
    """End all processes on an unreachable network, and close the loop."""
    network.fault_rates.reset()
    network.fault_rates.is_down = True
    network.cut_watches()
    loop.end_processes()
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    loop.run_until_complete(_all_ended(tasks))
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()


async def _all_ended(tasks: set[asyncio.Task[Any]]) -> None:
    await asyncio.gather(*tasks, return_exceptions=True)


def _problem(context: dict[str, Any]) -> str:
    return f"{context['message']}: {context.get('exception')!r}"


@contextmanager
def _without_collector() -> Iterator[None]:
    """Disable garbage collection, which a real process postpones as well."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def _without_logs() -> Iterator[None]:
    """Disable logs, which take most of the time of a seed."""
    before = structlog.get_config()
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger("critical"),
        logger_factory=structlog.ReturnLoggerFactory(),
    )
    try:
        yield
    finally:
        structlog.configure(**before)
