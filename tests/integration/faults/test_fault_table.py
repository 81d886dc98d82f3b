"""A running scheduler shows each fault as docs/reference/faults.md says."""

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
from simcluster.tests.support.api_client import MERGE, until
from simcluster.tests.support.api_client import PODS as PODS_PATH
from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S
from tests.integration.faults.observed_scheduler import (
    EXTENDERS,
    LEASE_S,
    LEASES,
    ObservedScheduler,
    configuration,
    observed_scheduler,
)
from tests.integration.scheduling.volume_objects import (
    CLAIMS,
    CLASSES,
    PROVISIONED,
    claim,
    claim_volumes,
    storage_class,
)
from tests.support.integration.full_cluster import BINDINGS, CAPACITY, TOO_MUCH
from tests.support.monitoring.fault_table import Fault, Series, faults


def _drop_watches(scheduler: ObservedScheduler) -> None:
    scheduler.cluster.server.watchers.close_all()


async def _unreachable(scheduler: ObservedScheduler) -> None:
    await scheduler.cluster.server.be_away(2.0)


async def _busy(scheduler: ObservedScheduler) -> None:
    scheduler.fail(
        FaultRule("POST", BINDINGS, status=503),
        FaultRule("POST", BINDINGS, status=429, retry_after_s=1),
        FaultRule("GET", "/nodes.*watch=", status=503),
    )
    _drop_watches(scheduler)
    scheduler.pod()


async def _lease_held_by_another(scheduler: ObservedScheduler) -> None:
    """Another replica holds the lease, and a watch breaks while the process waits for it."""
    scheduler.pod()
    scheduler.fail(FaultRule("GET", "/nodes.*watch=", status=500))
    await scheduler.start()


async def _release_lease(scheduler: ObservedScheduler) -> None:
    released = {"holderIdentity": "", "leaseDurationSeconds": 1}
    await scheduler.api.patch(f"{LEASES}/stowage", {"spec": released}, MERGE)
    await scheduler.wait_until_leader()


async def _lease_lost(scheduler: ObservedScheduler) -> None:
    scheduler.fail(FaultRule("", "/leases", times=10**6, status=503, lasts_s=LEASE_S * 2))


async def _stopped(scheduler: ObservedScheduler) -> None:
    scheduler.send(signal.SIGSTOP)
    await asyncio.sleep(LEASE_S + 1.5)
    scheduler.send(signal.SIGCONT)


async def _wrong_edit(scheduler: ObservedScheduler) -> None:
    await scheduler.edit(configuration(-1))


async def _right_edit(scheduler: ObservedScheduler) -> None:
    await scheduler.edit(configuration(1))


async def _cannot_start(scheduler: ObservedScheduler) -> None:
    """The ConfigMap has a mistake; then the port is in use."""
    scheduler.send(signal.SIGTERM)
    await scheduler.exit_code()
    await _wrong_edit(scheduler)
    await scheduler.start()
    await scheduler.exit_code()
    await _right_edit(scheduler)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        await scheduler.start(other.getsockname()[1])
        await scheduler.exit_code()


async def _unauthorized(scheduler: ObservedScheduler) -> None:
    scheduler.fail(
        FaultRule("GET", "/nodes.*watch=", times=2, status=401),
        FaultRule("", "/leases", status=401),
    )
    _drop_watches(scheduler)


async def _forbidden(scheduler: ObservedScheduler) -> None:
    scheduler.fail(
        FaultRule("GET", "/nodes.*watch=", status=403),
        FaultRule("PATCH", "/status$", status=403),
        FaultRule("POST", "/events$", status=403),
    )
    _drop_watches(scheduler)
    scheduler.pod(TOO_MUCH)


async def _bindings_refused(scheduler: ObservedScheduler) -> None:
    scheduler.fail(FaultRule("POST", BINDINGS, status=422))
    scheduler.pod()


async def _bindings_retried(scheduler: ObservedScheduler) -> None:
    scheduler.fail(
        FaultRule("POST", BINDINGS, times=2, status=503),
        FaultRule("POST", BINDINGS, is_applied=True, is_dropped=True),
        FaultRule("GET", "/pods/p", times=2, status=500),
    )
    scheduler.pod()


async def _evictions_refused(scheduler: ObservedScheduler) -> None:
    there = {"nodeSelector": {"disk": "ssd"}}
    scheduler.pod(CAPACITY["cpu"], **there)
    await until(
        scheduler.api, PODS_PATH, scheduler.names[-1], lambda pod: "nodeName" in pod["spec"]
    )
    scheduler.fail(FaultRule("DELETE", "/pods/", times=2, status=403))
    scheduler.pod(CAPACITY["cpu"], priorityClassName="high", **there)


async def _volumes_not_written(scheduler: ObservedScheduler) -> None:
    await scheduler.api.create(CLASSES, storage_class(PROVISIONED, "disk.example.com"))
    await scheduler.api.create(CLAIMS, claim("data"))
    scheduler.fail(
        FaultRule("PATCH", "/persistentvolumeclaims/", status=429),
        FaultRule("PATCH", "/persistentvolumeclaims/", status=422),
    )
    scheduler.pod(volumes=claim_volumes("data"))


async def _kopf_broken(scheduler: ObservedScheduler) -> None:
    scheduler.fail(FaultRule("GET", "/configmaps.*watch=", status=410))
    _drop_watches(scheduler)


async def _watch_broken(scheduler: ObservedScheduler) -> None:
    scheduler.cluster.server.forget_history()
    _drop_watches(scheduler)


async def _watch_not_accepted(scheduler: ObservedScheduler) -> None:
    scheduler.fail(FaultRule("GET", "/nodes.*watch=", times=5, status=503))
    _drop_watches(scheduler)


async def _extenders_fail(scheduler: ObservedScheduler) -> None:
    for name in EXTENDERS:
        scheduler.pod_requesting(f"example.com/{name}")


async def _filter_raises(scheduler: ObservedScheduler) -> None:
    scheduler.pod(labels={"raise-in-filter": ""})


async def _pre_bind_returns_wrong_type(scheduler: ObservedScheduler) -> None:
    scheduler.pod(labels={"nothing-in-pre-bind": ""})


async def _slow_bindings(scheduler: ObservedScheduler) -> None:
    scheduler.fail(FaultRule("POST", BINDINGS, delay_s=0.5))
    scheduler.pod()


async def _event_refused(scheduler: ObservedScheduler) -> None:
    scheduler.fail(FaultRule("POST", "/events$", status=403))
    scheduler.pod()


async def _unschedulable(scheduler: ObservedScheduler) -> None:
    scheduler.pod(TOO_MUCH)


async def _malformed_node(scheduler: ObservedScheduler) -> None:
    store = scheduler.cluster.store
    node = store.get("nodes", "", "n0")
    assert node is not None
    metadata = {**node.obj["metadata"], "name": "malformed", "uid": "malformed"}
    status = {**node.obj["status"], "allocatable": {"cpu": "some"}}
    store.put("nodes", {**node.obj, "metadata": metadata, "status": status})


async def _no_request_is_authorized(scheduler: ObservedScheduler) -> None:
    scheduler.fail(
        FaultRule("POST", "/tokenreviews", status=500),
        FaultRule("POST", "/subjectaccessreviews", status=500),
    )
    for headers in ({"Authorization": "Bearer another"}, {}):
        async with (
            aiohttp.ClientSession(headers=headers) as session,
            session.get(f"https://127.0.0.1:{scheduler.port}/metrics", ssl=False) as answer,
        ):
            assert answer.status in (401, 500)


@dataclass(frozen=True, slots=True)
class FaultCase:
    """How to cause a row of the fault table.

    Attributes:
        cause: Causes the fault.
        end_fault: Ends a fault that lasts until it is ended.
        not_caused: Log events of the row that this case does not cause.
        ends_process: Whether the process exits because of it.
    """

    cause: Callable[[ObservedScheduler], Awaitable[object]]
    end_fault: Callable[[ObservedScheduler], Awaitable[object]] | None = None
    not_caused: frozenset[str] = frozenset()
    ends_process: bool = False


FAULT_CASES: dict[str, FaultCase] = {
    "nothing is tried": FaultCase(_lease_held_by_another, _release_lease),
    "API server unreachable, slow, or not the one its certificate is for": FaultCase(_unreachable),
    "API server busy or failing": FaultCase(_busy),
    "configuration refused": FaultCase(_wrong_edit, _right_edit),
    "token or client certificate refused or run out": FaultCase(
        _unauthorized, not_caused=frozenset({"credentials not renewed", "credentials not reloaded"})
    ),
    # No pod group exists; see writers/test_pod_group_status.
    "a right is missing": FaultCase(
        _forbidden, not_caused=frozenset({"pod group status not written"})
    ),
    "bindings refused": FaultCase(_bindings_refused),
    "bindings held up": FaultCase(_bindings_retried),
    "evictions refused": FaultCase(_evictions_refused),
    "volumes not written or not bound in time": FaultCase(_volumes_not_written),
    "watch broken or listed anew": FaultCase(_watch_broken),
    "watch of pending pods or of the ConfigMap broken": FaultCase(
        _kopf_broken, not_caused=frozenset({"kopf does not watch"})
    ),
    # The cause is logged once a minute, and faults before have caused it.
    "watch not accepted": FaultCase(
        _watch_not_accepted, not_caused=frozenset({"the API server does not answer"})
    ),
    "extender failing": FaultCase(_extenders_fail),
    "plugin raising": FaultCase(_filter_raises),
    "PreBind plugin that hangs or answers nothing": FaultCase(
        _pre_bind_returns_wrong_type,
        not_caused=frozenset({"PreBind plugin failed", "PreBind plugin does not end; left behind"}),
    ),
    # Bindings are slow here; test_attempt_log has a slow cycle.
    "slow": FaultCase(_slow_bindings, not_caused=frozenset({"slow scheduling cycle"})),
    "pods pending too long": FaultCase(_unschedulable),
    "an object is left out": FaultCase(_malformed_node),
    "endpoints refuse all clients": FaultCase(_no_request_is_authorized),
    "lease lost": FaultCase(_lease_lost, ends_process=True),
    "stopped or starved for longer than the lease": FaultCase(_stopped, ends_process=True),
    "it does not start": FaultCase(_cannot_start, ends_process=True),
}
#: Rows that other tests check, which need an environment of their own.
CHECKED_ELSEWHERE = {
    "API server restored from a backup of etcd",  # test_restored_server
    "memory limit reached",  # engine/test_event_faults
    "no replica answers",  # metrics/test_alerts
    "a resource that a plugin registered does not exist",  # watch/test_custom_resources
    "watch over a dead connection",  # test_idle_watches
    "traces are not exported",  # process/test_tracing
    "claims for devices not written",  # writers/test_claim_writer
    "a claim for devices is not taken back",  # writers/test_claim_writer
    "extender failing in preemption, or answering nonsense",  # extenders/test_victim_review
    "Events missing",  # writers/test_event_recorder
    "decisions are not logged",  # decisions/test_log
    "queue or memory grows",  # metrics/test_alerts
    "a bug in Stowage",  # writers/test_worker_pool
    "cache and API server differ",  # watch/test_cache_comparer
    "the state in memory is inconsistent",  # test_state_validator
    "nothing is recorded any more",  # test_recording
    "certificate of the endpoints not followed",  # serving/test_serving_certificate
    "no self-signed certificate for the endpoints",  # serving/test_serving_certificate
}


async def _missing(scheduler: ObservedScheduler, fault: Fault, case: FaultCase) -> str:
    """Cause a fault; returns log events and metrics of its row that the process did not show."""
    scheduler.mark_log()
    events = fault.events - case.not_caused
    before = await scheduler.values(fault.metrics)
    await case.cause(scheduler)
    moved: set[Series] = set()
    with suppress(TimeoutError):
        async with asyncio.timeout(WAIT_TIMEOUT_S):
            while not (events <= scheduler.events() and len(moved) == len(fault.metrics)):
                after = await scheduler.values(fault.metrics)
                moved |= {
                    each for each in fault.metrics if after.get(each, 0.0) != before.get(each, 0.0)
                }
                await asyncio.sleep(0.05)
    missing = [*sorted(events - scheduler.events())]
    return ", ".join([*missing, *(each.name for each in fault.metrics if each not in moved)])


async def test_each_fault_shows_the_log_events_and_metrics_of_its_row(tmp_path: Path) -> None:
    table = faults()
    missing: dict[str, str] = {}
    async with observed_scheduler(tmp_path) as scheduler:
        await scheduler.prepare()
        for symptom, case in FAULT_CASES.items():
            missing[symptom] = await _missing(scheduler, table[symptom], case)
            if case.ends_process:
                assert await scheduler.exit_code() == 1
                scheduler.mark_log()
                await scheduler.start()
                await scheduler.wait_until_leader()
            elif case.end_fault is not None:
                await case.end_fault(scheduler)
            scheduler.cluster.faults.clear()
            await scheduler.clear()
    assert {symptom: what for symptom, what in missing.items() if what} == {}


def test_each_row_of_the_fault_table_has_a_test() -> None:
    assert set(faults()) == FAULT_CASES.keys() | CHECKED_ELSEWHERE
    assert not FAULT_CASES.keys() & CHECKED_ELSEWHERE
