"""Whatever the API server does: no pod is lost or bound twice, no node holds more than it has.

The real scheduler drains pods into a cluster that has room for just these; in the midst of it
something goes wrong. Nothing here depends on how fast anything is: a test that fails by its
deadline has found something that hangs.
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
from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S
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


# Kopf leaves the responses and tasks of requests that failed to the garbage collector, which
# complains about them whenever it comes by; what is tested here is judged by the auditor.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    """What a test leaves to the collector is collected in it, not in whoever comes next."""
    yield
    gc.collect()


IMPATIENT = Timeouts(request_s=0.5, watch_idle_s=1.5, max_backoff_s=0.5)
RESTLESS = Timeouts(max_backoff_s=0.5)

RULES: dict[str, tuple[FaultRule, ...]] = {
    "conflicts on bindings": (FaultRule("POST", BINDINGS, times=20, status=409),),
    "bindings are too many": (
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
    "answers to lost bindings lost, too": (
        FaultRule("POST", BINDINGS, times=20, is_applied=True, is_dropped=True),
        FaultRule("GET", "/pods/p", times=20, status=403),
        FaultRule("GET", "/pods/p", times=20, is_dropped=True),
    ),
    "bindings are slow": (FaultRule("POST", BINDINGS, times=60, delay_s=0.3),),
}


@pytest.fixture
async def sea(tmp_path: Path) -> AsyncIterator[FullCluster]:
    """A cluster of empty nodes."""
    async with full_cluster(tmp_path / "kubeconfig") as troubled:
        yield troubled


def _is_too_big(pod: Json) -> bool:
    requests = pod["spec"]["containers"][0]["resources"].get("requests", {})
    return bool(requests.get("cpu") == TOO_MUCH)


def _says_unschedulable(pod: Json) -> bool:
    return scheduled_condition(pod) == ("False", "Unschedulable")


@pytest.mark.parametrize("rules", RULES.values(), ids=RULES.keys())
async def test_requests_that_fail_in_mid_drain(
    sea: FullCluster, rules: tuple[FaultRule, ...]
) -> None:
    sea.fill(NUM_PODS // 2)
    async with running_scheduler(sea.kubeconfig) as scheduler:
        await sea.drained(0.2)
        # Rules count down as they are used.
        sea.fail(*(FaultRule(**_fields(rule)) for rule in rules))
        sea.fill(NUM_PODS // 2)
        await sea.expect_recovery(scheduler)
    assert sea.cluster.faults.hits > 0


def _fields(rule: FaultRule) -> dict[str, Any]:
    return {name: getattr(rule, name) for name in rule.__struct_fields__}


@pytest.mark.parametrize("is_history_lost", [False, True], ids=["dropped", "forgotten"])
async def test_watches_that_break_in_mid_drain(sea: FullCluster, is_history_lost: bool) -> None:
    sea.fill(NUM_PODS // 2)
    async with running_scheduler(sea.kubeconfig) as scheduler:
        for share in (0.1, 0.3, 0.5):
            await sea.drained(share)
            if is_history_lost:
                sea.forget_history()
            else:
                sea.drop_watches()
        sea.fill(NUM_PODS // 2)
        sea.forget_history()
        await sea.expect_recovery(scheduler)


@pytest.mark.parametrize("status", [410, 429, 503])
@pytest.mark.parametrize("requests", [LISTS, WATCHES], ids=["lists", "watches"])
async def test_lists_and_watches_that_are_refused(
    sea: FullCluster, requests: str, status: int
) -> None:
    sea.fill(NUM_PODS // 2)
    async with running_scheduler(sea.kubeconfig, timeouts=RESTLESS) as scheduler:
        await sea.drained(0.3)
        sea.fail(FaultRule("GET", requests, times=9, status=status, retry_after_s=1))
        sea.forget_history()
        sea.fill(NUM_PODS // 2)
        await sea.expect_recovery(scheduler)


async def test_a_list_that_expires_between_two_pages(sea: FullCluster) -> None:
    for number in range(510):
        sea.create(small_pod(f"there{number}", "", nodeName=f"n{number % NUM_NODES}"))
    sea.fill(510, cpu="")
    sea.fail(FaultRule("GET", "continue=", times=4, status=410))
    async with running_scheduler(sea.kubeconfig, timeouts=RESTLESS) as scheduler:
        await sea.drained(0.7)
        sea.fail(FaultRule("GET", "continue=", times=4, status=410))
        sea.forget_history()
        await sea.expect_recovery(scheduler)
    assert sea.cluster.faults.hits >= 5


async def test_lost_answers_to_status_patches_and_events(sea: FullCluster) -> None:
    async with running_scheduler(sea.kubeconfig) as scheduler:
        for method, path in (("PATCH", "/status$"), ("POST", "/events$")):
            sea.fail(
                FaultRule(method, path, times=5, is_applied=True, is_dropped=True),
                FaultRule(method, path, times=5, status=500),
                FaultRule(method, path, times=5, status=429, retry_after_s=1),
                FaultRule(method, path, times=5, is_dropped=True),
            )
        for number in range(10):
            sea.create(small_pod(f"big{number}", TOO_MUCH))
        sea.fill(NUM_PODS)
        await sea.auditor.until(
            lambda: all(map(_says_unschedulable, filter(_is_too_big, sea.auditor.pods.values()))),
            "conditions written",
        )
        await sea.expect_recovery(scheduler, stays=_is_too_big)


async def test_a_pod_that_finds_a_place_is_not_told_that_it_has_none(
    sea: FullCluster,
) -> None:
    """A status patch under way when the place appears must not land after the binding."""
    for number in range(NUM_NODES):
        sea.delete_node(number)
    sea.add_full_node()
    async with running_scheduler(sea.kubeconfig) as scheduler:
        sea.fail(FaultRule("PATCH", "/status$", times=NUM_PODS, delay_s=0.2))
        sea.fill(NUM_PODS)
        await _soon(lambda: scheduler.engine.pending_counts()["unschedulable"] > 0)
        for number in range(NUM_NODES):
            sea.add_node(number)
        await sea.expect_recovery(scheduler)


@pytest.mark.parametrize("seconds", [0.2, 2.0])
async def test_a_server_that_is_away_in_mid_drain(sea: FullCluster, seconds: float) -> None:
    sea.create(small_pod("big", TOO_MUCH))
    sea.fill(NUM_PODS // 2)
    async with running_scheduler(sea.kubeconfig) as scheduler:
        await sea.drained(0.3)
        absence = asyncio.create_task(sea.cluster.server.be_away(seconds))
        await asyncio.sleep(0)
        sea.fill(NUM_PODS // 2)
        sea.create(small_pod("bigger", TOO_MUCH))
        await absence
        await sea.auditor.until(
            lambda: all(_says_unschedulable(sea.auditor.named(name)) for name in ("big", "bigger")),
            "conditions written",
        )
        await sea.expect_recovery(scheduler, stays=_is_too_big)


async def test_pods_deleted_while_they_are_bound(sea: FullCluster) -> None:
    names = sea.fill(NUM_PODS)
    sea.fail(FaultRule("POST", BINDINGS, times=NUM_PODS, delay_s=0.1))
    async with running_scheduler(sea.kubeconfig) as scheduler:
        await _soon(lambda: scheduler.engine.in_flight() > 0)
        for name in names[::3]:
            sea.delete(name)
        # Others take their names, with other UIDs, while the old ones' bindings are in flight.
        for name in names[::6]:
            sea.create(small_pod(name))
        await sea.drained(0.5)
        for name in names[1::3]:
            sea.delete(name)
            sea.create(small_pod(name))
        sea.fill(NUM_PODS - len(sea.auditor.pods))
        await sea.expect_recovery(scheduler)


async def _soon(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_TIMEOUT_S):
        while not holds():  # noqa: ASYNC110 - the engine tells nobody
            await asyncio.sleep(0.005)


async def test_nodes_that_come_back_as_others_in_mid_drain(sea: FullCluster) -> None:
    sea.fill(NUM_PODS)
    async with running_scheduler(sea.kubeconfig) as scheduler:
        await sea.drained(0.3)
        for number in range(0, NUM_NODES, 2):
            sea.delete_node(number)
        await asyncio.sleep(0.05)
        for number in range(0, NUM_NODES, 2):
            sea.add_node(number, disk="ssd")
        await sea.auditor.until(lambda: not sea.auditor.unbound(), "the first bound")
        # The kubelets took some pods along with their nodes: as many fit again.
        num_lost = NUM_PODS - len(sea.auditor.pods)
        for number in range(num_lost):
            sea.create(small_pod(f"again{number}"))
        await sea.auditor.until(lambda: not sea.auditor.unbound(), "the others bound")
        sea.create(small_pod("picky", "", nodeSelector={"disk": "ssd"}))
        await sea.expect_recovery(scheduler)
        assert int(node_of(sea.auditor.named("picky"))[1:]) % 2 == 0


async def test_pods_that_were_there_before_their_node(sea: FullCluster) -> None:
    for number in range(NUM_NODES):
        sea.delete_node(number)
    sea.add_full_node()
    sea.fill(NUM_PODS)
    auditor = sea.auditor
    async with running_scheduler(sea.kubeconfig) as scheduler:
        await auditor.until(
            lambda: all(map(_says_unschedulable, auditor.pods.values())), "all unschedulable"
        )
        for number in range(NUM_NODES):
            sea.add_node(number)
            await asyncio.sleep(0.01)
        await sea.expect_recovery(scheduler)


async def test_pods_bound_by_another_scheduler(sea: FullCluster) -> None:
    names = sea.fill(NUM_PODS, cpu="")
    sea.fail(FaultRule("POST", BINDINGS, times=20, delay_s=0.1))
    async with running_scheduler(sea.kubeconfig) as scheduler:
        await _soon(lambda: scheduler.engine.in_flight() > 0)
        for number, name in enumerate(names):
            if number % 2 and not node_of(sea.auditor.named(name)):
                sea.bind_elsewhere(name, f"n{number % 3}")
        await sea.expect_recovery(scheduler)


MALFORMED: dict[str, Callable[[Json], None]] = {
    "an impossible quantity": lambda pod: _container(pod).update(
        resources={"requests": {"cpu": "lots"}}
    ),
    "containers that are no list": lambda pod: pod["spec"].update(containers="none"),
    "labels that are no map": lambda pod: pod["metadata"].update(labels=["a"]),
    "a priority that is no number": lambda pod: pod["spec"].update(priority="high"),
    "an operator nobody knows": lambda pod: pod["spec"].update(
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


async def test_malformed_objects_stop_nothing(sea: FullCluster) -> None:
    store = sea.cluster.store
    for number, spoil in enumerate(MALFORMED.values()):
        for place in ({}, {"nodeName": "n1"}):
            name = f"bad{number}{place.get('nodeName', '')}"
            sea.create(small_pod(name, "", **place))
            found = store.get(PODS.stored_in, "default", name)
            assert found is not None
            pod = {
                **found.obj,
                "metadata": dict(found.obj["metadata"]),
                "spec": {**found.obj["spec"], "containers": [dict(_container(found.obj))]},
            }
            spoil(pod)
            store.put(PODS.stored_in, pod)
    node = store.get("nodes", "", "n0")
    assert node is not None
    spoiled = {**node.obj["metadata"], "name": "spoiled", "uid": "spoiled"}
    status = {**node.obj["status"], "allocatable": {"cpu": "some"}}
    store.put("nodes", {**node.obj, "metadata": spoiled, "status": status})
    sea.fill(NUM_PODS)
    auditor = sea.auditor

    def is_bad(pod: Json) -> bool:
        return str(pod["metadata"]["name"]).startswith("bad")

    async with running_scheduler(sea.kubeconfig):
        await auditor.until(lambda: not auditor.unbound(besides=is_bad), "the good ones bound")
        sea.forget_history()
        sea.fail(FaultRule("GET", LISTS, times=1, status=500))
        await sea.expect_recovery(stays=is_bad)
        # Whoever made them is told.
        names = {f"bad{number}" for number in range(len(MALFORMED))}
        await _soon(lambda: names <= _regarding(sea, "FailedScheduling"))


def _regarding(sea: FullCluster, reason: str) -> set[str]:
    """Names of what there are events about with that reason."""
    return {
        str(event.obj["involvedObject"]["name"])
        for event in sea.cluster.store.collection("events").items()
        if event.obj["reason"] == reason
    }


async def test_gated_pods_wait_for_their_gates_and_delay_no_other_pod(
    sea: FullCluster,
) -> None:
    gates = [{"name": "example.com/quota"}]
    for number in range(50):
        sea.create(small_pod(f"gated{number}", "", schedulingGates=gates))
    sea.fill(NUM_PODS // 2)

    def is_gated(pod: Json) -> bool:
        return bool(pod["spec"].get("schedulingGates"))

    async with running_scheduler(sea.kubeconfig) as scheduler:
        await sea.drained(0.2)
        sea.forget_history()
        sea.fill(NUM_PODS // 2)
        await sea.expect_recovery(scheduler, stays=is_gated)
        assert scheduler.engine.pending_counts()["gated"] == 50
        for number in range(0, 50, 2):
            found = sea.cluster.store.get(PODS.stored_in, "default", f"gated{number}")
            assert found is not None
            spec = {key: value for key, value in found.obj["spec"].items() if "Gates" not in key}
            sea.cluster.store.put(PODS.stored_in, {**found.obj, "spec": spec})
        await sea.expect_recovery(scheduler, stays=is_gated)
        assert scheduler.engine.pending_counts()["gated"] == 25


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=["SIGTERM", "SIGKILL"])
async def test_a_scheduler_that_ends_in_mid_drain_and_the_next_one(
    sea: FullCluster, tmp_path: Path, how: signal.Signals
) -> None:
    log = tmp_path / "log"
    sea.create(small_pod("big", TOO_MUCH))
    sea.fill(NUM_PODS)
    sea.fail(FaultRule("POST", BINDINGS, times=NUM_PODS, skip=NUM_PODS // 4, delay_s=0.1))
    async with scheduler_process(sea.kubeconfig, log) as first:
        await sea.drained(0.25)
        first.send_signal(how)
        status = await asyncio.wait_for(first.wait(), WAIT_TIMEOUT_S)
    assert status == (0 if how is signal.SIGTERM else -signal.SIGKILL), log.read_text()
    assert sea.auditor.unbound()
    sea.fail(FaultRule("POST", BINDINGS, times=10, is_applied=True, is_dropped=True))
    async with scheduler_process(sea.kubeconfig, log):
        await sea.auditor.until(
            lambda: _says_unschedulable(sea.auditor.named("big")), "a condition written"
        )
        await sea.expect_recovery(stays=_is_too_big)


@pytest.mark.parametrize("is_applied", [True, False], ids=["applied", "not applied"])
async def test_requests_that_are_never_answered(sea: FullCluster, is_applied: bool) -> None:
    sea.create(small_pod("big", TOO_MUCH))
    sea.fill(NUM_PODS // 2)
    async with running_scheduler(sea.kubeconfig, timeouts=IMPATIENT) as scheduler:
        await sea.drained(0.2)
        for method, path in (("POST", BINDINGS), ("PATCH", "/status$"), ("POST", "/events$")):
            sea.fail(FaultRule(method, path, times=20, is_applied=is_applied, hang_s=30))
        sea.fail(FaultRule("GET", "/pods/p", times=5, hang_s=30))
        sea.fill(NUM_PODS // 2)
        await sea.expect_recovery(scheduler, stays=_is_too_big)


async def test_watches_and_lists_that_fall_silent(sea: FullCluster) -> None:
    sea.fill(NUM_PODS // 2)
    async with running_scheduler(sea.kubeconfig, timeouts=IMPATIENT) as scheduler:
        await sea.drained(0.3)
        sea.fail(FaultRule("GET", WATCHES, times=8, hang_s=30))
        sea.fail(FaultRule("GET", LISTS, times=2, hang_s=30))
        sea.forget_history()
        sea.fill(NUM_PODS // 2)
        await sea.expect_recovery(scheduler)


async def test_a_server_that_is_away_for_very_long(sea: FullCluster) -> None:
    """As two minutes would be to a scheduler that waits up to 30 s between two tries."""
    sea.create(small_pod("big", TOO_MUCH))
    sea.fill(NUM_PODS // 2)
    timeouts = Timeouts(request_s=5.0, watch_idle_s=20.0, max_backoff_s=2.0)
    async with running_scheduler(sea.kubeconfig, timeouts=timeouts) as scheduler:
        await sea.drained(0.3)
        absence = asyncio.create_task(sea.cluster.server.be_away(8.0))
        await asyncio.sleep(0)
        sea.fill(NUM_PODS // 2)
        await absence
        await sea.auditor.until(
            lambda: _says_unschedulable(sea.auditor.named("big")), "a condition written"
        )
        await sea.expect_recovery(scheduler, stays=_is_too_big)


@pytest.mark.parametrize("seed", range(3))
async def test_everything_at_once(
    sea: FullCluster, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Pods bound and deleted within one gap of the watch are found out by reading them back.
    monkeypatch.setattr(unconfirmed_bindings, "CONFIRM_WITHIN_S", 1.0)
    sea.fill(NUM_PODS // 2)
    async with running_scheduler(sea.kubeconfig, timeouts=IMPATIENT) as scheduler:
        await RandomFaults(sea, seed).run(3.0)
        await sea.expect_recovery(scheduler)
