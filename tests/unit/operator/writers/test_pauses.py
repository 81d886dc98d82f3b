"""Requests that fail are sent again after pauses that double, up to a longest one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from stowage.api.config.extenders import Extenders
from stowage.api.config.loading import Extender
from stowage.api.instructions import (
    BindClaims,
    BindPod,
    BindVolumes,
    ClaimReference,
    EmitEvent,
    EvictPod,
    ExtendedClaimToBind,
    PatchPodStatus,
    PodReference,
    ReleaseClaims,
    SetSelectedNode,
)
from stowage.api.objects.pod import ContainerExtendedResourceRequest
from stowage.operator.client.api_error import ApiError
from stowage.operator.client.timeouts import Timeouts
from stowage.operator.clock import Clock
from stowage.operator.decisions.records import DecisionIds
from stowage.operator.extenders.objects import ExtenderObjects
from stowage.operator.writers.binder import Binder
from stowage.operator.writers.claim_releaser import ClaimReleaser
from stowage.operator.writers.claim_writer import ClaimWriter
from stowage.operator.writers.event_recorder import EventRecorder
from stowage.operator.writers.evictor import Evictor
from stowage.operator.writers.object_events import ObjectEventRecorder, OwnObject
from stowage.operator.writers.pod_reader import PodReader
from stowage.operator.writers.pod_status import PodStatusWriter
from stowage.operator.writers.volume_writer import VolumeWriter
from tests.support.fake_api import FakeApiClient, FakeTime
from tests.unit.operator.tasks import let_tasks_run
from tests.unit.operator.writers.claim_answers import (
    ALLOCATION,
    CLAIM,
    PROTECTED,
    RESERVED,
    WANTED,
    json_of,
)

POD = PodReference("default", "p", "uid-p")
LONGEST_S = 0.35
"""The longest pause of those writers that take it from the timeouts of the client."""

Work = Callable[[FakeApiClient, Clock], Awaitable[object]]


async def _bind(client: FakeApiClient, clock: Clock) -> None:
    await Binder(client, lambda: True, clock).bind(BindPod(POD, "n"))


async def _read_pod(client: FakeApiClient, clock: Clock) -> None:
    await PodReader(client, clock).read(POD)


async def _evict(client: FakeApiClient, clock: Clock) -> None:
    await Evictor(client, clock).evict(EvictPod(POD, PodReference("default", "q", "u"), "s"))


async def _release_claim(client: FakeApiClient, clock: Clock) -> None:
    claim = ClaimReference("default", "c", "uid-c", "3")
    await ClaimReleaser(client, clock).release(ReleaseClaims(POD, (claim,)))


async def _write_claim(client: FakeApiClient, clock: Clock) -> None:
    writer = ClaimWriter(client, lambda: True, clock, lambda _status: None)
    await writer.write(BindClaims(POD, "n", (WANTED,), number=1))


async def _write_extended_claim(client: FakeApiClient, clock: Clock) -> None:
    writer = ClaimWriter(client, lambda: True, clock, lambda _status: None)
    named = ContainerExtendedResourceRequest("main", "example.com/gpu", "container-0-request-0")
    extended = ExtendedClaimToBind(CLAIM.spec, ALLOCATION, (named,))
    await writer.write(BindClaims(POD, "n", (), extended))


async def _write_volume(client: FakeApiClient, clock: Clock) -> None:
    claim = SetSelectedNode("default", "data", "c1", "7")
    await VolumeWriter(client, lambda: True, clock).write(BindVolumes(POD, "n", claims=(claim,)))


async def _write_status(client: FakeApiClient, clock: Clock) -> None:
    writer = PodStatusWriter(client, lambda: True, clock)
    writer.patch(PatchPodStatus(POD, "Unschedulable", "no node"))
    await let_tasks_run()


async def _emit_event(client: FakeApiClient, clock: Clock) -> None:
    recorder = EventRecorder(client, "host", clock, DecisionIds("p"))
    recorder.emit(EmitEvent(POD, "Normal", "Scheduled", "Binding", "assigned", "stowage"))
    await let_tasks_run()


async def _record_event(client: FakeApiClient, clock: Clock) -> None:
    about = OwnObject("v1", "ConfigMap", "team", "config")
    recorder = ObjectEventRecorder(client, about, "Configuring", clock)
    recorder.record("uid-1", reason="Invalid", note="no such field")
    await recorder.close(60.0)


async def _show_to_extender(client: FakeApiClient, clock: Clock) -> None:
    extenders = Extenders([Extender(url_prefix="http://x", filter_verb="filter")])
    await ExtenderObjects(client, clock, extenders).pod(POD)


BOUND = {
    "metadata": {"namespace": "default", "name": "p", "uid": "uid-p", "resourceVersion": "2"},
    "spec": {"nodeName": "n"},
}
CREATED = json_of(CLAIM, "4")
UNCHANGED = {"metadata": {"name": "data", "uid": "c1", "resourceVersion": "7"}}
SELECTED = {
    "metadata": {
        **UNCHANGED["metadata"],
        "resourceVersion": "8",
        "annotations": {"volume.kubernetes.io/selected-node": "n"},
    }
}
LOST = TimeoutError()
REFUSED = ApiError(503)


@pytest.mark.parametrize(
    ("work", "answers", "pauses_s"),
    [
        (
            _bind,
            {"post": [LOST], "get": [LOST] * 8 + [BOUND]},
            [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0],
        ),
        (_read_pod, {"get": [LOST] * 3 + [BOUND]}, [0.2, LONGEST_S, LONGEST_S]),
        (_evict, {"patch": [LOST] * 3 + [{}], "delete": [{}]}, [0.1, 0.2, LONGEST_S]),
        (_evict, {"patch": [{}], "delete": [LOST] * 3 + [{}]}, [0.1, 0.2, LONGEST_S]),
        (_release_claim, {"patch": [LOST] * 3 + [{}]}, [0.1, 0.2, LONGEST_S]),
        (
            _write_claim,
            {"patch": [PROTECTED, *[LOST] * 11, RESERVED], "get": [PROTECTED]},
            [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.0],
        ),
        (
            _write_claim,
            {"patch": [PROTECTED, LOST], "get": [LOST, REFUSED] * 4 + [RESERVED]},
            [0.01, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0],
        ),
        (
            _write_volume,
            {"patch": [*[LOST] * 8, SELECTED], "get": [UNCHANGED]},
            [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0],
        ),
        (
            _write_volume,
            {"patch": [LOST], "get": [LOST, REFUSED] * 4 + [SELECTED]},
            [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0],
        ),
        (
            _write_extended_claim,
            {"post": [CREATED], "patch": [PROTECTED, RESERVED, *[LOST] * 4, {}]},
            [0.1, 0.2, 0.4, 0.8],
        ),
        (_write_status, {"patch": [LOST] * 3 + [{}]}, [0.2, LONGEST_S, LONGEST_S]),
        (_record_event, {"post": [LOST] * 4 + [{}]}, [0.5, 1.0, 2.0, 4.0]),
        (_show_to_extender, {"get": [LOST] * 2 + [BOUND]}, [0.1, 0.2]),
    ],
    ids=lambda given: given.__name__.strip("_") if callable(given) else "",
)
async def test_a_request_without_an_answer_is_repeated_after_pauses_that_double(
    work: Work, answers: dict[str, list[Any]], pauses_s: list[float]
) -> None:
    client, time = FakeApiClient(**answers), FakeTime()
    client.timeouts = Timeouts(max_backoff_s=LONGEST_S)
    await work(client, time.clock)
    assert time.slept == pauses_s


async def test_an_event_waits_for_others_and_is_repeated_after_pauses_that_double() -> None:
    client, time = FakeApiClient(post=[LOST] * 3 + [{}]), FakeTime()
    client.timeouts = Timeouts(max_backoff_s=1.5)
    await _emit_event(client, time.clock)
    assert time.slept == [0.5, 0.5, 1.0, 1.5]
