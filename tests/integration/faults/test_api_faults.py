"""Faults of the API server: every pod is bound once, and no node is overcommitted.

A scheduler binds pods in a simulated cluster that has room for exactly these; meanwhile requests,
watches, nodes or the scheduler itself fail. No test depends on speed: a test that runs into its
timeout has found something that hangs.
"""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from simcluster import FaultRule
from simcluster.kinds.resources import PODS
from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S, wait_until
from stowage.engine.state import unconfirmed_bindings
from stowage.operator.client.timeouts import Timeouts
from tests.support.integration.auditor import node_of, scheduled_condition
from tests.support.integration.full_cluster import (
    BINDINGS,
    LISTS,
    NUM_NODES,
    NUM_PODS,
    TOO_MUCH,
    WATCHES,
    FullCluster,
    full_cluster,
    small_pod,
)
from tests.support.integration.random_faults import RandomFaults
from tests.support.integration.running_scheduler import running_scheduler, scheduler_process

Json = dict[str, Any]


# Kopf leaves responses and tasks of failed requests to the garbage collector, which warns about
# them. The auditor decides whether a test passes.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    """Collect the garbage of a test before the next one begins."""
    yield
    gc.collect()


SHORT_TIMEOUTS = Timeouts(request_s=0.5, watch_idle_s=1.5, max_backoff_s=0.5)
SHORT_BACKOFF = Timeouts(max_backoff_s=0.5)

RULES: dict[str, tuple[FaultRule, ...]] = {
    "conflicts on bindings": (FaultRule("POST", BINDINGS, times=20, status=409),),
    "bindings are answered 429": (
        FaultRule("POST", BINDINGS, times=20, status=429, retry_after_s=1),
        FaultRule("POST", BINDINGS, times=20, status=429),
    ),
    "errors on bindings": (
        FaultRule("POST", BINDINGS, times=30, status=500),
        FaultRule("POST", BINDINGS, times=30, status=503),
    ),
    "errors on everything": (
        FaultRule(times=60, status=500),
        FaultRule(times=60, status=503),
        FaultRule(times=20, status=504),
    ),
    "bindings applied, answers dropped": (
        FaultRule("POST", BINDINGS, times=30, is_applied=True, is_dropped=True),
    ),
    "bindings applied, answered with an error": (
        FaultRule("POST", BINDINGS, times=30, is_applied=True, status=500),
    ),
    "bindings dropped unapplied": (FaultRule("POST", BINDINGS, times=30, is_dropped=True),),
    "answers to bindings and to reading the pods back are lost": (
        FaultRule("POST", BINDINGS, times=20, is_applied=True, is_dropped=True),
        FaultRule("GET", "/pods/p", times=20, status=403),
        FaultRule("GET", "/pods/p", times=20, is_dropped=True),
    ),
    "bindings are slow": (FaultRule("POST", BINDINGS, times=60, delay_s=0.3),),
}


@pytest.fixture
async def full(tmp_path: Path) -> AsyncIterator[FullCluster]:
    """A simulated cluster with empty nodes."""
    async with full_cluster(tmp_path / "kubeconfig") as cluster:
        yield cluster


def _is_too_big(pod: Json) -> bool:
    requests = pod["spec"]["containers"][0]["resources"].get("requests", {})
    return bool(requests.get("cpu") == TOO_MUCH)


def _says_unschedulable(pod: Json) -> bool:
    return scheduled_condition(pod) == ("False", "Unschedulable")


@pytest.mark.parametrize("rules", RULES.values(), ids=RULES.keys())
async def test_all_pods_are_bound_although_requests_fail(
    full: FullCluster, rules: tuple[FaultRule, ...]
) -> None:
    full.fill(NUM_PODS // 2)
    async with running_scheduler(full.kubeconfig) as scheduler:
        await full.drained(0.2)
        # Rules count down as they are used.
        full.fail(*(FaultRule(**_fields(rule)) for rule in rules))
        full.fill(NUM_PODS // 2)
        await full.expect_recovery(scheduler)
    assert full.cluster.faults.hits > 0


def _fields(rule: FaultRule) -> dict[str, Any]:
    return {name: getattr(rule, name) for name in rule.__struct_fields__}


@pytest.mark.parametrize("is_history_lost", [False, True], ids=["dropped", "forgotten"])
async def test_all_pods_are_bound_although_watches_break(
    full: FullCluster, is_history_lost: bool
) -> None:
    full.fill(NUM_PODS // 2)
    async with running_scheduler(full.kubeconfig) as scheduler:
        for share in (0.1, 0.3, 0.5):
            await full.drained(share)
            if is_history_lost:
                full.forget_history()
            else:
                full.drop_watches()
        full.fill(NUM_PODS // 2)
        full.forget_history()
        await full.expect_recovery(scheduler)


@pytest.mark.parametrize("status", [410, 429, 503])
@pytest.mark.parametrize("requests", [LISTS, WATCHES], ids=["lists", "watches"])
async def test_all_pods_are_bound_although_lists_or_watches_are_refused(
    full: FullCluster, requests: str, status: int
) -> None:
    full.fill(NUM_PODS // 2)
    async with running_scheduler(full.kubeconfig, timeouts=SHORT_BACKOFF) as scheduler:
        await full.drained(0.3)
        full.fail(FaultRule("GET", requests, times=9, status=status, retry_after_s=1))
        full.forget_history()
        full.fill(NUM_PODS // 2)
        await full.expect_recovery(scheduler)


async def test_all_pods_are_bound_although_a_list_expires_between_two_pages(
    full: FullCluster,
) -> None:
    for number in range(510):
        full.create(small_pod(f"there{number}", "", nodeName=f"n{number % NUM_NODES}"))
    full.fill(510, cpu="")
    full.fail(FaultRule("GET", "continue=", times=4, status=410))
    async with running_scheduler(full.kubeconfig, timeouts=SHORT_BACKOFF) as scheduler:
        await full.drained(0.7)
        full.fail(FaultRule("GET", "continue=", times=4, status=410))
        full.forget_history()
        await full.expect_recovery(scheduler)
    assert full.cluster.faults.hits >= 5


async def test_conditions_are_written_although_status_patches_and_events_fail(
    full: FullCluster,
) -> None:
    async with running_scheduler(full.kubeconfig) as scheduler:
        for method, path in (("PATCH", "/status$"), ("POST", "/events$")):
            full.fail(
                FaultRule(method, path, times=5, is_applied=True, is_dropped=True),
                FaultRule(method, path, times=5, status=500),
                FaultRule(method, path, times=5, status=429, retry_after_s=1),
                FaultRule(method, path, times=5, is_dropped=True),
            )
        for number in range(10):
            full.create(small_pod(f"big{number}", TOO_MUCH))
        full.fill(NUM_PODS)
        await full.auditor.until(
            lambda: all(map(_says_unschedulable, filter(_is_too_big, full.auditor.pods.values()))),
            "conditions written",
        )
        await full.expect_recovery(scheduler, stays=_is_too_big)


async def test_a_bound_pod_is_never_marked_unschedulable(
    full: FullCluster,
) -> None:
    """A status patch in flight when nodes are added must not be applied after the binding."""
    for number in range(NUM_NODES):
        full.delete_node(number)
    full.add_full_node()
    async with running_scheduler(full.kubeconfig) as scheduler:
        full.fail(FaultRule("PATCH", "/status$", times=NUM_PODS, delay_s=0.2))
        full.fill(NUM_PODS)
        await wait_until(lambda: scheduler.engine.pending_counts()["unschedulable"] > 0)
        for number in range(NUM_NODES):
            full.add_node(number)
        await full.expect_recovery(scheduler)


@pytest.mark.parametrize("seconds", [0.2, 2.0])
async def test_all_pods_are_bound_although_the_server_is_unreachable_for_a_moment(
    full: FullCluster, seconds: float
) -> None:
    full.create(small_pod("big", TOO_MUCH))
    full.fill(NUM_PODS // 2)
    async with running_scheduler(full.kubeconfig) as scheduler:
        await full.drained(0.3)
        absence = asyncio.create_task(full.cluster.server.be_away(seconds))
        await asyncio.sleep(0)
        full.fill(NUM_PODS // 2)
        full.create(small_pod("bigger", TOO_MUCH))
        await absence
        await full.auditor.until(
            lambda: all(
                _says_unschedulable(full.auditor.named(name)) for name in ("big", "bigger")
            ),
            "conditions written",
        )
        await full.expect_recovery(scheduler, stays=_is_too_big)


async def test_pods_can_be_deleted_while_they_are_bound(full: FullCluster) -> None:
    names = full.fill(NUM_PODS)
    full.fail(FaultRule("POST", BINDINGS, times=NUM_PODS, delay_s=0.1))
    async with running_scheduler(full.kubeconfig) as scheduler:
        await wait_until(lambda: scheduler.engine.in_flight() > 0)
        for name in names[::3]:
            full.delete(name)
        # Pods of the same names and other UIDs are created while the bindings of the deleted ones
        # are in flight.
        for name in names[::6]:
            full.create(small_pod(name))
        await full.drained(0.5)
        for name in names[1::3]:
            full.delete(name)
            full.create(small_pod(name))
        full.fill(NUM_PODS - len(full.auditor.pods))
        await full.expect_recovery(scheduler)


async def test_all_pods_are_bound_although_nodes_are_deleted_and_created_anew(
    full: FullCluster,
) -> None:
    full.fill(NUM_PODS)
    async with running_scheduler(full.kubeconfig) as scheduler:
        await full.drained(0.3)
        for number in range(0, NUM_NODES, 2):
            full.delete_node(number)
        await asyncio.sleep(0.05)
        for number in range(0, NUM_NODES, 2):
            full.add_node(number, disk="ssd")
        await full.auditor.until(lambda: not full.auditor.unbound(), "the first bound")
        # Pods of deleted nodes are deleted, too; as many fit again.
        num_lost = NUM_PODS - len(full.auditor.pods)
        for number in range(num_lost):
            full.create(small_pod(f"again{number}"))
        await full.auditor.until(lambda: not full.auditor.unbound(), "the others bound")
        full.create(small_pod("picky", "", nodeSelector={"disk": "ssd"}))
        await full.expect_recovery(scheduler)
        assert int(node_of(full.auditor.named("picky"))[1:]) % 2 == 0


async def test_unschedulable_pods_are_bound_when_nodes_are_added(full: FullCluster) -> None:
    for number in range(NUM_NODES):
        full.delete_node(number)
    full.add_full_node()
    full.fill(NUM_PODS)
    auditor = full.auditor
    async with running_scheduler(full.kubeconfig) as scheduler:
        await auditor.until(
            lambda: all(map(_says_unschedulable, auditor.pods.values())), "all unschedulable"
        )
        for number in range(NUM_NODES):
            full.add_node(number)
            await asyncio.sleep(0.01)
        await full.expect_recovery(scheduler)


async def test_no_node_is_overcommitted_although_another_scheduler_binds_pods(
    full: FullCluster,
) -> None:
    names = full.fill(NUM_PODS, cpu="")
    full.fail(FaultRule("POST", BINDINGS, times=20, delay_s=0.1))
    async with running_scheduler(full.kubeconfig) as scheduler:
        await wait_until(lambda: scheduler.engine.in_flight() > 0)
        for number, name in enumerate(names):
            if number % 2 and not node_of(full.auditor.named(name)):
                full.bind_elsewhere(name, f"n{number % 3}")
        await full.expect_recovery(scheduler)


MALFORMED: dict[str, Callable[[Json], None]] = {
    "an invalid quantity": lambda pod: _container(pod).update(
        resources={"requests": {"cpu": "lots"}}
    ),
    "containers are not a list": lambda pod: pod["spec"].update(containers="none"),
    "labels are not a map": lambda pod: pod["metadata"].update(labels=["a"]),
    "the priority is not a number": lambda pod: pod["spec"].update(priority="high"),
    "an unknown operator": lambda pod: pod["spec"].update(
        affinity={
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "a", "operator": "Like", "values": ["b"]}]}
                    ]
                }
            }
        }
    ),
}


def _container(pod: Json) -> Json:
    container: Json = pod["spec"]["containers"][0]
    return container


async def test_malformed_objects_delay_no_other_pod(full: FullCluster) -> None:
    store = full.cluster.store
    for number, damage in enumerate(MALFORMED.values()):
        for place in ({}, {"nodeName": "n1"}):
            name = f"bad{number}{place.get('nodeName', '')}"
            full.create(small_pod(name, "", **place))
            found = store.get(PODS.stored_in, "default", name)
            assert found is not None
            pod = {
                **found.obj,
                "metadata": dict(found.obj["metadata"]),
                "spec": {**found.obj["spec"], "containers": [dict(_container(found.obj))]},
            }
            damage(pod)
            store.put(PODS.stored_in, pod)
    node = store.get("nodes", "", "n0")
    assert node is not None
    damaged = {**node.obj["metadata"], "name": "damaged", "uid": "damaged"}
    status = {**node.obj["status"], "allocatable": {"cpu": "some"}}
    store.put("nodes", {**node.obj, "metadata": damaged, "status": status})
    full.fill(NUM_PODS)
    auditor = full.auditor

    def is_bad(pod: Json) -> bool:
        return str(pod["metadata"]["name"]).startswith("bad")

    async with running_scheduler(full.kubeconfig):
        await auditor.until(lambda: not auditor.unbound(besides=is_bad), "the good ones bound")
        full.forget_history()
        full.fail(FaultRule("GET", LISTS, times=1, status=500))
        await full.expect_recovery(stays=is_bad)
        # The users who created them get Events.
        names = {f"bad{number}" for number in range(len(MALFORMED))}
        await wait_until(lambda: names <= _regarding(full, "FailedScheduling"))


def _regarding(full: FullCluster, reason: str) -> set[str]:
    """The names of objects that have an Event with this reason."""
    return {
        str(event.obj["involvedObject"]["name"])
        for event in full.cluster.store.collection("events").items()
        if event.obj["reason"] == reason
    }


async def test_gated_pods_are_bound_only_after_their_gates_are_removed(
    full: FullCluster,
) -> None:
    gates = [{"name": "example.com/quota"}]
    for number in range(50):
        full.create(small_pod(f"gated{number}", "", schedulingGates=gates))
    full.fill(NUM_PODS // 2)

    def is_gated(pod: Json) -> bool:
        return bool(pod["spec"].get("schedulingGates"))

    async with running_scheduler(full.kubeconfig) as scheduler:
        await full.drained(0.2)
        full.forget_history()
        full.fill(NUM_PODS // 2)
        await full.expect_recovery(scheduler, stays=is_gated)
        assert scheduler.engine.pending_counts()["gated"] == 50
        for number in range(0, 50, 2):
            found = full.cluster.store.get(PODS.stored_in, "default", f"gated{number}")
            assert found is not None
            spec = {key: value for key, value in found.obj["spec"].items() if "Gates" not in key}
            full.cluster.store.put(PODS.stored_in, {**found.obj, "spec": spec})
        await full.expect_recovery(scheduler, stays=is_gated)
        assert scheduler.engine.pending_counts()["gated"] == 25


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=["SIGTERM", "SIGKILL"])
async def test_a_second_scheduler_binds_the_pods_that_the_first_left_pending(
    full: FullCluster, tmp_path: Path, how: signal.Signals
) -> None:
    log = tmp_path / "log"
    full.create(small_pod("big", TOO_MUCH))
    full.fill(NUM_PODS)
    full.fail(FaultRule("POST", BINDINGS, times=NUM_PODS, skip=NUM_PODS // 4, delay_s=0.1))
    async with scheduler_process(full.kubeconfig, log) as first:
        await full.drained(0.25)
        first.send_signal(how)
        status = await asyncio.wait_for(first.wait(), WAIT_TIMEOUT_S)
    assert status == (0 if how is signal.SIGTERM else -signal.SIGKILL), log.read_text()
    assert full.auditor.unbound()
    full.fail(FaultRule("POST", BINDINGS, times=10, is_applied=True, is_dropped=True))
    async with scheduler_process(full.kubeconfig, log):
        await full.auditor.until(
            lambda: _says_unschedulable(full.auditor.named("big")), "a condition written"
        )
        await full.expect_recovery(stays=_is_too_big)


@pytest.mark.parametrize("is_applied", [True, False], ids=["applied", "not applied"])
async def test_all_pods_are_bound_although_requests_are_never_answered(
    full: FullCluster, is_applied: bool
) -> None:
    full.create(small_pod("big", TOO_MUCH))
    full.fill(NUM_PODS // 2)
    async with running_scheduler(full.kubeconfig, timeouts=SHORT_TIMEOUTS) as scheduler:
        await full.drained(0.2)
        for method, path in (("POST", BINDINGS), ("PATCH", "/status$"), ("POST", "/events$")):
            full.fail(FaultRule(method, path, times=20, is_applied=is_applied, hang_s=30))
        full.fail(FaultRule("GET", "/pods/p", times=5, hang_s=30))
        full.fill(NUM_PODS // 2)
        await full.expect_recovery(scheduler, stays=_is_too_big)


async def test_all_pods_are_bound_although_lists_and_watches_hang(full: FullCluster) -> None:
    full.fill(NUM_PODS // 2)
    async with running_scheduler(full.kubeconfig, timeouts=SHORT_TIMEOUTS) as scheduler:
        await full.drained(0.3)
        full.fail(FaultRule("GET", WATCHES, times=8, hang_s=30))
        full.fail(FaultRule("GET", LISTS, times=2, hang_s=30))
        full.forget_history()
        full.fill(NUM_PODS // 2)
        await full.expect_recovery(scheduler)


async def test_all_pods_are_bound_although_the_server_is_unreachable_for_long(
    full: FullCluster,
) -> None:
    """Four times the longest backoff; with the default of 30 s that is two minutes."""
    full.create(small_pod("big", TOO_MUCH))
    full.fill(NUM_PODS // 2)
    timeouts = Timeouts(request_s=5.0, watch_idle_s=20.0, max_backoff_s=2.0)
    async with running_scheduler(full.kubeconfig, timeouts=timeouts) as scheduler:
        await full.drained(0.3)
        absence = asyncio.create_task(full.cluster.server.be_away(8.0))
        await asyncio.sleep(0)
        full.fill(NUM_PODS // 2)
        await absence
        await full.auditor.until(
            lambda: _says_unschedulable(full.auditor.named("big")), "a condition written"
        )
        await full.expect_recovery(scheduler, stays=_is_too_big)


@pytest.mark.parametrize("seed", range(3))
async def test_all_pods_are_bound_under_random_faults(
    full: FullCluster, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The scheduler reads back pods that were bound and deleted while the watch was broken.
    monkeypatch.setattr(unconfirmed_bindings, "CONFIRM_WITHIN_S", 1.0)
    full.fill(NUM_PODS // 2)
    async with running_scheduler(full.kubeconfig, timeouts=SHORT_TIMEOUTS) as scheduler:
        await RandomFaults(full, seed).run(3.0)
        await full.expect_recovery(scheduler)
