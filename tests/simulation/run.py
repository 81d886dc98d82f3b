"""One seed, from the first object to the verdict."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import structlog

from tests.simulation.audit import Auditor, end_state_violations
from tests.simulation.loop import VirtualLoop
from tests.simulation.network import Network, Weather
from tests.simulation.plan import STORMY_S, Emphasis, Plan
from tests.simulation.replica import SCHEDULER_NAME
from tests.simulation.server import ModelServer

SETTLED_S = 120.0
"""How long after the last fault everything must be as it should: leases, back-offs, retries."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a seed.

    Attributes:
        violations: One sentence each; none if all is well.
        faults: How often each kind struck.
        num_bound: Pods that the scheduler bound.
        num_changes: Writes in the server's history.
        trace: What was done to the cluster, and what was bound, in order.
    """

    seed: int
    violations: tuple[str, ...]
    faults: Counter[str]
    num_bound: int
    num_changes: int
    trace: tuple[str, ...]


def simulate(seed: int, emphasis: Emphasis = Emphasis()) -> Outcome:  # noqa: B008 - it is frozen
    """Live through one seed, with more of something if that is wanted."""
    rng = random.Random(seed)
    loop = VirtualLoop()
    problems: list[str] = []
    loop.set_exception_handler(lambda _loop, context: problems.append(_problem(context)))
    server = ModelServer(loop.time)
    auditor = Auditor(server)
    network = Network(loop, server, rng, Weather(), auditor.binding_sent)
    plan = Plan(loop, server, network, rng, emphasis)
    asyncio.set_event_loop(None)
    with _silence():
        try:
            plan.begin()
            loop.run_until_complete(asyncio.sleep(STORMY_S + SETTLED_S))
            violations = [*auditor.violations, *problems, *_verdict(plan, server)]
        finally:
            _end(loop, network)
    return Outcome(
        seed,
        tuple(violations),
        network.weather.happened,
        auditor.num_bound,
        len(server.history),
        (*plan.log, *_bindings(server)),
    )


def _verdict(plan: Plan, server: ModelServer) -> Iterator[str]:
    engines = [replica.engine for replica in plan.replicas if replica.engine is not None]
    if not engines:
        yield "no replica is running"
    for engine in engines:
        yield from end_state_violations(server, engine, SCHEDULER_NAME)


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
def _silence() -> Iterator[None]:
    """No logs: they are most of the time a seed takes."""
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger("critical"))
    try:
        yield
    finally:
        structlog.configure(**before)
