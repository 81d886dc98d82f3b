"""Whatever the API server does: no pod is lost or bound twice, no node holds more than it has.

The real scheduler drains pods into a cluster that has room for just these; in the midst of it
something goes wrong. Nothing here depends on how fast anything is: a test that fails by its
deadline has found something that hangs.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from scheduler.cluster import FaultRule
from scheduler.cluster.errors import ApiError
from scheduler.cluster.resources import PODS
from tests.support.auditor import Auditor, node_of, scheduled_condition
from tests.support.running_scheduler import running_scheduler, scheduler_process
from tests.support.troubled_cluster import (
    NUM_NODES,
    NUM_PODS,
    TOO_MUCH,
    TroubledCluster,
    small_pod,
    troubled_cluster,
)

Json = dict[str, Any]

BINDINGS = "/binding$"
LISTS = r"^(?!.*watch=).*/(pods|nodes|namespaces|services|replicasets)\?"
WATCHES = "watch=true"

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
async def sea(tmp_path: Path) -> AsyncIterator[TroubledCluster]:
    """A cluster of empty nodes."""
    async with troubled_cluster(tmp_path / "kubeconfig") as troubled:
        yield troubled


def _is_too_big(pod: Json) -> bool:
    requests = pod["spec"]["containers"][0]["resources"].get("requests", {})
    return bool(requests.get("cpu") == TOO_MUCH)


def _says_unschedulable(pod: Json) -> bool:
    return scheduled_condition(pod) == ("False", "Unschedulable")


@pytest.mark.parametrize("rules", RULES.values(), ids=RULES.keys())
async def test_requests_that_fail_in_mid_drain(
    sea: TroubledCluster, rules: tuple[FaultRule, ...]
) -> None:
    sea.fill(NUM_PODS // 2)
    async with running_scheduler(sea.kubeconfig) as scheduler:
        await sea.drained(0.2)
        # Rules count down as they are used.
        sea.fail(*(FaultRule(**_fields(rule)) for rule in rules))
        sea.fill(NUM_PODS // 2)
        await sea.expect_well(scheduler)
    assert sea.cluster.faults.hits > 0


def _fields(rule: FaultRule) -> dict[str, Any]:
    return {name: getattr(rule, name) for name in rule.__struct_fields__}


@pytest.mark.parametrize("is_history_lost", [False, True], ids=["dropped", "forgotten"])
async def test_watches_that_break_in_mid_drain(
    sea: TroubledCluster, is_history_lost: bool
) -> None:
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
        await sea.expect_well(scheduler)


@pytest.mark.parametrize("status", [410, 429, 500, 503])
@pytest.mark.parametrize("requests", [LISTS, WATCHES], ids=["lists", "watches"])
async def test_lists_and_watches_that_are_refused(
    sea: TroubledCluster, requests: str, status: int
) -> None:
    sea.fill(NUM_PODS // 2)
    async with running_scheduler(sea.kubeconfig) as scheduler:
        await sea.drained(0.3)
        sea.fail(FaultRule("GET", requests, times=12, status=status, retry_after_s=1))
        sea.forget_history()
        sea.fill(NUM_PODS // 2)
        await sea.expect_well(scheduler)


async def test_a_list_that_expires_between_two_pages(sea: TroubledCluster) -> None:
    for number in range(510):
        sea.create(small_pod(f"there{number}", "", nodeName=f"n{number % NUM_NODES}"))
    sea.fill(510, cpu="")
    sea.fail(FaultRule("GET", "continue=", times=4, status=410))
    async with running_scheduler(sea.kubeconfig) as scheduler:
        await sea.drained(0.7)
        sea.fail(FaultRule("GET", "continue=", times=4, status=410))
        sea.forget_history()
        await sea.expect_well(scheduler)
    assert sea.cluster.faults.hits >= 5


async def test_lost_answers_to_status_patches_and_events(sea: TroubledCluster) -> None:
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
        await sea.expect_well(scheduler, stays=_is_too_big)
