"""A running scheduler shows each fault as the table of the documents says."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from simcluster import FaultRule
from tests.integration.troubled_world import (
    EXTENDERS,
    LEASE_S,
    LEASES,
    World,
    configuration,
    world_in,
)
from tests.integration.volume_objects import CLAIMS, CLASSES, claim, storage_class, using
from tests.support.api_client import MERGE, until
from tests.support.api_client import PODS as PODS_PATH
from tests.support.fault_table import Fault, Series, faults
from tests.support.patience import PATIENCE_S
from tests.support.troubled_cluster import BINDINGS, CAPACITY, TOO_MUCH


def _drop_watches(world: World) -> None:
    world.cluster.server.watchers.close_all()


async def _nothing(_world: World) -> None:
    """Time goes by."""


async def _unreachable(world: World) -> None:
    await world.cluster.server.be_away(2.0)


async def _busy(world: World) -> None:
    world.fail(
        FaultRule("POST", BINDINGS, status=503),
        FaultRule("POST", BINDINGS, status=429, retry_after_s=1),
        FaultRule("GET", "/nodes.*watch=", status=503),
    )
    _drop_watches(world)
    world.pod()


async def _taken_by_another(world: World) -> None:
    """Somebody else holds the lease when it starts, and a watch breaks while it waits."""
    world.pod()
    world.fail(FaultRule("GET", "/nodes.*watch=", status=500))
    await world.start()


async def _give_way(world: World) -> None:
    released = {"holderIdentity": "", "leaseDurationSeconds": 1}
    await world.api.patch(f"{LEASES}/stowage", {"spec": released}, MERGE)
    await world.leads()


async def _lease_lost(world: World) -> None:
    world.fail(FaultRule("", "/leases", times=10**6, status=503, lasts_s=LEASE_S * 2))


async def _stopped(world: World) -> None:
    world.send(signal.SIGSTOP)
    await asyncio.sleep(LEASE_S + 1.5)
    world.send(signal.SIGCONT)


async def _wrong_edit(world: World) -> None:
    await world.edit(configuration(-1))


async def _right_edit(world: World) -> None:
    await world.edit(configuration(1))


async def _cannot_start(world: World) -> None:
    """Neither with a mistake in the ConfigMap nor where its port is taken."""
    world.send(signal.SIGTERM)
    await world.ended()
    await _wrong_edit(world)
    await world.start()
    await world.ended()
    await _right_edit(world)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        await world.start(other.getsockname()[1])
        await world.ended()


async def _unauthorized(world: World) -> None:
    world.fail(
        FaultRule("GET", "/nodes.*watch=", times=2, status=401),
        FaultRule("", "/leases", status=401),
    )
    _drop_watches(world)


async def _forbidden(world: World) -> None:
    world.fail(
        FaultRule("GET", "/nodes.*watch=", status=403),
        FaultRule("PATCH", "/status$", status=403),
        FaultRule("POST", "/events$", status=403),
    )
    _drop_watches(world)
    world.pod(TOO_MUCH)


async def _bindings_refused(world: World) -> None:
    world.fail(FaultRule("POST", BINDINGS, status=422))
    world.pod()


async def _bindings_held_up(world: World) -> None:
    world.fail(
        FaultRule("POST", BINDINGS, times=2, status=503),
        FaultRule("POST", BINDINGS, is_applied=True, is_dropped=True),
        FaultRule("GET", "/pods/p", times=2, status=500),
    )
    world.pod()


async def _evictions_refused(world: World) -> None:
    there = {"nodeSelector": {"disk": "ssd"}}
    world.pod(CAPACITY["cpu"], **there)
    await until(world.api, PODS_PATH, world.names[-1], lambda pod: "nodeName" in pod["spec"])
    world.fail(FaultRule("DELETE", "/pods/", times=2, status=403))
    world.pod(CAPACITY["cpu"], priorityClassName="high", **there)


async def _volumes_not_written(world: World) -> None:
    await world.api.create(CLASSES, storage_class("made", "disk.example.com"))
    await world.api.create(CLAIMS, claim("data"))
    world.fail(
        FaultRule("PATCH", "/persistentvolumeclaims/", status=429),
        FaultRule("PATCH", "/persistentvolumeclaims/", status=422),
    )
    world.pod(volumes=using("data"))


async def _kopf_broken(world: World) -> None:
    world.fail(FaultRule("GET", "/configmaps.*watch=", status=410))
    _drop_watches(world)


async def _watch_broken(world: World) -> None:
    world.cluster.server.forget_history()
    _drop_watches(world)


async def _extenders_fail(world: World) -> None:
    for name in EXTENDERS:
        world.pod_asking(f"example.com/{name}")


async def _filter_raises(world: World) -> None:
    world.pod(labels={"raise-in-filter": ""})


async def _pre_bind_answers_nonsense(world: World) -> None:
    world.pod(labels={"nothing-in-pre-bind": ""})


async def _slow(world: World) -> None:
    world.fail(FaultRule("POST", BINDINGS, delay_s=0.5))
    world.pod()


async def _event_refused(world: World) -> None:
    world.fail(FaultRule("POST", "/events$", status=403))
    world.pod()


async def _fits_nowhere(world: World) -> None:
    world.pod(TOO_MUCH)


async def _odd_node(world: World) -> None:
    store = world.cluster.store
    node = store.get("nodes", "", "n0")
    assert node is not None
    odd = {**node.obj["metadata"], "name": "odd", "uid": "odd"}
    status = {**node.obj["status"], "allocatable": {"cpu": "some"}}
    store.put("nodes", {**node.obj, "metadata": odd, "status": status})


async def _nobody_is_let_in(world: World) -> None:
    world.fail(
        FaultRule("POST", "/tokenreviews", status=500),
        FaultRule("POST", "/subjectaccessreviews", status=500),
    )
    for headers in ({"Authorization": "Bearer another"}, {}):
        async with (
            aiohttp.ClientSession(headers=headers) as session,
            session.get(f"https://127.0.0.1:{world.port}/metrics", ssl=False) as answer,
        ):
            assert answer.status in (401, 500)


@dataclass(frozen=True, slots=True)
class Story:
    """How a row of the table comes about.

    Attributes:
        cause: Begins it.
        mend: Ends what does not end by itself.
        elsewhere: Log lines of the row that this story does not bring about.
        is_end: Whether the process ends by it.
    """

    cause: Callable[[World], Awaitable[object]]
    mend: Callable[[World], Awaitable[object]] | None = None
    elsewhere: frozenset[str] = frozenset()
    is_end: bool = False


STORIES: dict[str, Story] = {
    "nothing is tried": Story(_taken_by_another, _give_way),
    "API server unreachable, slow, or not the one its certificate is for": Story(_unreachable),
    "API server busy or failing": Story(_busy),
    "configuration refused": Story(_wrong_edit, _right_edit),
    "token or client certificate refused or run out": Story(
        _unauthorized, elsewhere=frozenset({"credentials not renewed", "credentials not reloaded"})
    ),
    "a right is missing": Story(_forbidden),
    "bindings refused": Story(_bindings_refused),
    "bindings held up": Story(_bindings_held_up),
    "evictions refused": Story(_evictions_refused),
    "volumes not written or not bound in time": Story(_volumes_not_written),
    "watch broken or listed anew": Story(_watch_broken),
    "watch of pending pods or of the ConfigMap broken": Story(
        _kopf_broken, elsewhere=frozenset({"kopf does not watch"})
    ),
    "watch silent": Story(_nothing),
    "extender failing": Story(_extenders_fail),
    "plugin raising": Story(_filter_raises),
    "PreBind plugin that hangs or answers nothing": Story(
        _pre_bind_answers_nonsense,
        elsewhere=frozenset({"PreBind plugin failed", "PreBind plugin does not end; left behind"}),
    ),
    "slow": Story(_slow),
    "pods pending too long": Story(_fits_nowhere),
    "an object is left out": Story(_odd_node),
    "endpoints refuse all clients": Story(_nobody_is_let_in),
    "lease lost": Story(_lease_lost, is_end=True),
    "stopped or starved for longer than the lease": Story(_stopped, is_end=True),
    "it does not start": Story(_cannot_start, is_end=True),
}
#: Rows that take a certificate's, an extender's or a test's own surroundings; see the tests there.
ELSEWHERE = {
    "no replica answers",  # metrics/test_alerts
    "extender failing in preemption, or answering nonsense",  # extenders/test_victim_review
    "Events missing",  # writers/test_event_recorder
    "queue or memory grows",  # metrics/test_alerts
    "a bug in Stowage",  # writers/test_worker_pool
    "cache and API server differ",  # watch/test_cache_comparer
    "certificate of the endpoints not followed",  # serving/test_serving_certificate
}


async def _missing(world: World, fault: Fault, story: Story) -> str:
    """Have it happen; what the table promises and nobody saw."""
    world.look_away()
    events = fault.events - story.elsewhere
    before = await world.values(fault.metrics)
    await story.cause(world)
    moved: set[Series] = set()
    with suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE_S):
            while not (events <= world.events() and len(moved) == len(fault.metrics)):
                after = await world.values(fault.metrics)
                moved |= {
                    each for each in fault.metrics if after.get(each, 0.0) != before.get(each, 0.0)
                }
                await asyncio.sleep(0.05)
    missing = [*sorted(events - world.events())]
    return ", ".join([*missing, *(each.name for each in fault.metrics if each not in moved)])


async def test_every_fault_shows_as_the_table_says(tmp_path: Path) -> None:
    table = faults()
    missing: dict[str, str] = {}
    async with world_in(tmp_path) as world:
        await world.prepare()
        for symptom, story in STORIES.items():
            missing[symptom] = await _missing(world, table[symptom], story)
            if story.is_end:
                assert await world.ended() == 1
                world.look_away()
                await world.start()
                await world.leads()
            elif story.mend is not None:
                await story.mend(world)
            world.cluster.faults.clear()
            await world.clear()
    assert {symptom: what for symptom, what in missing.items() if what} == {}


def test_every_row_is_told_by_a_test() -> None:
    assert set(faults()) == STORIES.keys() | ELSEWHERE
    assert not STORIES.keys() & ELSEWHERE
