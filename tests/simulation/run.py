"""One seed, from the first object to the verdict."""

from __future__ import annotations

import asyncio
import gc
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import structlog

from tests.simulation.audit import Auditor
from tests.simulation.configurations import describe_text, load_text
from tests.simulation.end_state import cluster_violations, engine_violations
from tests.simulation.loop import VirtualLoop
from tests.simulation.network import Network
from tests.simulation.plan import Emphasis, Plan
from tests.simulation.server import ModelServer
from tests.simulation.weather import RECOVERY_S, Weather

FAIL_OVER_S = 15.0 + 2.0 + 1.0
"""How soon after the death of the leader: a lease, a retry period, and the binding itself."""

VOLUME_S = 5.0
"""How long a volume may take when nothing goes wrong."""

DETACHED_S = 5.0
"""How soon after a volume is detached a pod takes its place."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a seed.

    Attributes:
        violations: One sentence each; none if all is well.
        faults: How often each kind struck, and how often each thing was done to the cluster.
        num_bound: Pods that the scheduler bound.
        num_changes: Writes in the server's history.
        trace: What was done to the cluster, and what was bound, in order.
        recovery_s: How long probes waited, by wave.
    """

    seed: int
    violations: tuple[str, ...]
    faults: Counter[str]
    num_bound: int
    num_changes: int
    trace: tuple[str, ...]
    recovery_s: dict[str, float] = field(default_factory=dict)


def simulate(seed: int, emphasis: Emphasis = Emphasis()) -> Outcome:  # noqa: B008 - it is frozen
    """Live through one seed, with more of something if that is wanted."""
    rng = random.Random(seed)
    loop = VirtualLoop()
    problems: list[str] = []
    early: list[str] = []
    loop.set_exception_handler(lambda _loop, context: problems.append(_problem(context)))
    server = ModelServer(loop.time)
    weather = Weather()
    auditor = Auditor(server, weather, loop.time)
    network = Network(loop, server, rng, weather, auditor.write_sent)
    plan = Plan(loop, server, network, rng, emphasis)
    asyncio.set_event_loop(None)
    with _silence(), _without_collector():
        try:
            auditor.extenders = plan.users.extenders
            plan.begin()
            loop.run_until_complete(plan.go_on(lambda: early.extend(_judged(plan, server))))
            found = [*early, *_judged(plan, server), *_late_probes(plan)]
            violations = [*auditor.violations, *problems, *dict.fromkeys(found)]
        finally:
            _end(loop, network)
    return Outcome(
        seed,
        tuple(violations),
        network.weather.happened,
        auditor.num_bound,
        len(server.history),
        (*plan.log, *_bindings(server)),
        {wave: max(plan.probes.bound_after(wave).values()) for wave in plan.probes.sent_at},
    )


def _judged(plan: Plan, server: ModelServer) -> Iterator[str]:
    names = [profile.scheduler_name for profile in load_text(plan.users.text).profiles]
    wanted = describe_text(plan.users.text).hash
    yield from cluster_violations(server, names, plan.users.extenders)
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
        "after the storm": RECOVERY_S,
        "after the leader": FAIL_OVER_S,
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
    """Let everybody clean up in a world where nothing can be reached."""
    network.weather.calm()
    network.weather.is_down = True
    network.cut_all()
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
    """No garbage collection: a real process puts it off as well."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def _silence() -> Iterator[None]:
    """No logs: they are most of the time a seed takes."""
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger("critical"))
    try:
        yield
    finally:
        structlog.configure(**before)
