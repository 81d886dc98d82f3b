"""Writes events.k8s.io/v1 Events, with the lowest priority of all writes."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

import msgspec
import structlog
from cachetools import LRUCache

from stowage.api.instructions import POD, EmitEvent, PodReference
from stowage.operator.client.api_client import LOST_ANSWER_ERRORS, ApiClient
from stowage.operator.client.api_error import ApiError
from stowage.operator.client.backoff import Backoff, retry
from stowage.operator.client.gated_client import LeaseNotHeldError
from stowage.operator.client.outage_log import plain_message
from stowage.operator.clock import Clock
from stowage.operator.decisions.records import DecisionIds
from stowage.operator.writers.worker_pool import WorkerPool

MAX_NAME_CHARACTERS = 253
MAX_INSTANCE_CHARACTERS = 128
MAX_NOTE_BYTES = 1024
MAX_WAITING = 10_000
MAX_REMEMBERED_SERIES = 10_000
SERIES_INTERVAL_S = 360.0
"""Interval between two writes of a repeated event's count; the first repetition is immediate."""
MAX_ATTEMPTS = 5
DECISION_ANNOTATION = "stowage/decision"
"""Annotation of an Event: the id of the decision that it is about."""
WIDTH = 8
WRITE_INTERVAL_S = 0.5
"""Events wait up to this long and are written together: after the bindings, and for less CPU."""

log = structlog.get_logger("stowage.operator.writers.event_recorder")

_SeriesKey = tuple[str, str, str, str, str]


class _Series(msgspec.Struct):
    """An event that may repeat."""

    path: str
    count: int
    written_at: float


class _Request(msgspec.Struct):
    """An Event to create, or a series to update."""

    instruction: EmitEvent
    path: str
    body: bytes
    is_patch: bool


class EventRecorder:
    """Creates Events and counts repetitions in a series, as client-go's events recorder does.

    At most `MAX_WAITING` events wait. One more drops the oldest FailedScheduling event, or else
    the oldest event.

    Attributes:
        num_dropped: Number of dropped events.
        pool: The workers that write the events.
    """

    def __init__(
        self, client: ApiClient, host_name: str, clock: Clock, decisions: DecisionIds
    ) -> None:
        self.num_dropped = 0
        self._client = client
        self._host_name = host_name
        self._clock = clock
        self._decisions = decisions
        self._series: LRUCache[_SeriesKey, _Series] = LRUCache(MAX_REMEMBERED_SERIES)
        self._failures: deque[EmitEvent] = deque()
        self._others: deque[EmitEvent] = deque()
        self.pool: WorkerPool[None] = WorkerPool("events", WIDTH, self._write_next)
        self._num_unplanned = 0
        self._pause: asyncio.Task[None] | None = None

    def emit(self, instruction: EmitEvent) -> None:
        """Write the event with the others of the present interval, when a worker is free."""
        if len(self._failures) + len(self._others) >= MAX_WAITING:
            (self._failures or self._others).popleft()
            self.num_dropped += 1
            self._queue_of(instruction).append(instruction)
            return
        self._queue_of(instruction).append(instruction)
        self._num_unplanned += 1
        if self._pause is None:
            self._pause = asyncio.create_task(self._write_after_pause(), name="events")

    async def close(self, grace_s: float) -> None:
        """Write what waits within `grace_s`, and no more."""
        if self._pause is not None:
            self._pause.cancel()
        self._write_waiting()
        await self.pool.close(grace_s, finish_waiting=grace_s > 0)

    async def _write_after_pause(self) -> None:
        await self._clock.sleep(WRITE_INTERVAL_S)
        self._pause = None
        self._write_waiting()

    def _write_waiting(self) -> None:
        # One job per waiting event; a worker takes the event that is next when the job begins.
        for _ in range(self._num_unplanned):
            self.pool.add(None)
        self._num_unplanned = 0

    def _queue_of(self, instruction: EmitEvent) -> deque[EmitEvent]:
        return self._failures if instruction.reason == "FailedScheduling" else self._others

    async def _write_next(self, _token: None) -> None:
        request = self._request((self._others or self._failures).popleft())
        if request is None:
            return
        backoff = Backoff(self._clock.jitter, 0.5, self._client.timeouts.max_backoff_s)
        send = self._client.patch if request.is_patch else self._client.post
        try:
            await retry(
                lambda: send(request.path, request.body), backoff, self._clock.sleep, MAX_ATTEMPTS
            )
        except (ApiError, *LOST_ANSWER_ERRORS) as error:
            if isinstance(error, ApiError) and error.status == 409 and not request.is_patch:
                # The name is unique: an earlier attempt was written and its answer lost.
                return
            self._series.pop(_series_key(request.instruction), None)
            is_known = isinstance(error, (LeaseNotHeldError, *LOST_ANSWER_ERRORS))
            write = log.debug if is_known else log.warning
            write(
                "event not written",
                pod=request.instruction.pod.key,
                reason=request.instruction.reason,
                error=plain_message(error),
            )

    def _request(self, instruction: EmitEvent) -> _Request | None:
        """The request for an event; None if a series only counts it."""
        key = _series_key(instruction)
        series = self._series.get(key)
        if series is None:
            return self._creation(instruction, key)
        series.count += 1
        now = self._clock.monotonic()
        if now - series.written_at < SERIES_INTERVAL_S:
            return None
        series.written_at = now
        observed = self._clock.timestamp_micro()
        body: dict[str, Any] = {"series": {"count": series.count, "lastObservedTime": observed}}
        decision = self._decisions.id_of(instruction.decision)
        if decision:
            body["metadata"] = {"annotations": {DECISION_ANNOTATION: decision}}
        return _Request(instruction, series.path, msgspec.json.encode(body), is_patch=True)

    def _creation(self, instruction: EmitEvent, key: _SeriesKey) -> _Request:
        pod = instruction.pod
        name = event_name(pod.name, pod.uid, self._clock.unix_nanoseconds())
        path = f"/apis/events.k8s.io/v1/namespaces/{pod.namespace}/events"
        if instruction.event_type != "Normal":
            # A pod has one Scheduled event; only warnings repeat.
            self._series[key] = _Series(f"{path}/{name}", 1, -SERIES_INTERVAL_S)
        instance = f"{instruction.scheduler_name}-{self._host_name}"[:MAX_INSTANCE_CHARACTERS]
        decision = self._decisions.id_of(instruction.decision)
        body = event_body(instruction, name, instance, self._clock.timestamp_micro(), decision)
        return _Request(instruction, path, body, is_patch=False)


def event_body(
    instruction: EmitEvent, name: str, reporting_instance: str, timestamp: str, decision: str = ""
) -> bytes:
    """An events.k8s.io/v1 Event; the profile is the reporting controller."""
    pod = instruction.pod
    metadata: dict[str, Any] = {"name": name, "namespace": pod.namespace}
    if decision:
        metadata["annotations"] = {DECISION_ANNOTATION: decision}
    event: dict[str, Any] = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": metadata,
        "eventTime": timestamp,
        "reportingController": instruction.scheduler_name,
        "reportingInstance": reporting_instance,
        "action": instruction.action,
        "reason": instruction.reason,
        "regarding": _reference(pod, instruction.resource_version),
        "note": cut_note(instruction.note),
        "type": instruction.event_type,
    }
    if instruction.related is not None:
        version = instruction.related_resource_version
        event["related"] = _reference(instruction.related, version, instruction.related_kind)
    return msgspec.json.encode(event)


def _reference(pod: PodReference, resource_version: str, kind: str = POD) -> dict[str, str]:
    """upstream: ``GetReference`` of client-go's tools/reference."""
    reference = {
        "apiVersion": "v1" if kind == POD else "scheduling.k8s.io/v1alpha2",
        "kind": kind,
        "namespace": pod.namespace,
        "name": pod.name,
        "uid": pod.uid,
    }
    if resource_version:
        reference["resourceVersion"] = resource_version
    return reference


def event_name(name: str, uid: str, unix_nanoseconds: int) -> str:
    """A unique name for an Event about an object; begins with its UID if its name is too long.

    upstream: ``GenerateEventName`` of client-go's tools/record/util.
    """
    suffix = f".{unix_nanoseconds:x}"
    return (name if len(name) + len(suffix) <= MAX_NAME_CHARACTERS else uid) + suffix


def cut_note(note: str) -> str:
    """The note within the API's limit of 1,024 bytes, marked where it was cut.

    upstream: ``truncateMessage`` of pkg/scheduler/schedule_one.go.
    """
    if len(note.encode()) <= MAX_NOTE_BYTES:
        return note
    suffix = " ..."
    kept = note.encode()[: MAX_NOTE_BYTES - len(suffix)].decode("utf-8", "ignore")
    return kept + suffix


def _series_key(instruction: EmitEvent) -> _SeriesKey:
    return (
        instruction.pod.uid,
        instruction.event_type,
        instruction.reason,
        instruction.action,
        instruction.note,
    )
