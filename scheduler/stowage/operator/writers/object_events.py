"""Kubernetes Events on objects of the scheduler's own: its ConfigMap and its Lease."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

import msgspec
import structlog

from stowage.operator.client.api_client import LOST_ANSWER_ERRORS, ApiClient
from stowage.operator.client.api_error import ApiError
from stowage.operator.client.backoff import Backoff, retry
from stowage.operator.client.outage_log import plain_message
from stowage.operator.clock import Clock
from stowage.operator.writers.event_recorder import MAX_ATTEMPTS, cut_note, event_name
from stowage.operator.writers.worker_pool import WorkerPool

CONTROLLER = "stowage"

log = structlog.get_logger("stowage.operator.writers.object_events")


class OwnObject(msgspec.Struct, frozen=True, rename="camel"):
    """An object that Events are about, as in ``regarding``."""

    api_version: str
    kind: str
    namespace: str
    name: str


class ObjectEventRecorder:
    """Writes Events about one object, one after the other.

    Args:
        client: Client of the API server.
        about: The object.
        action: The `action` of its Events.
        clock: Time, sleep and jitter.
        may_write: Whether this replica may write an Event at this moment.
    """

    def __init__(
        self,
        client: ApiClient,
        about: OwnObject,
        action: str,
        clock: Clock,
        may_write: Callable[[], bool] = lambda: True,
    ) -> None:
        self._client = client
        self._about = about
        self._action = action
        self._instance = f"{CONTROLLER}-{socket.gethostname()}"
        self._clock = clock
        self._may_write = may_write
        self._pool: WorkerPool[bytes] = WorkerPool(f"events of {about.kind}", 1, self._write)

    def record(self, uid: str, *, reason: str, note: str, is_warning: bool = False) -> None:
        """Write an Event when the worker is free."""
        if self._may_write():
            self._pool.add(self._body(uid, is_warning, reason, note))

    async def close(self, grace_s: float) -> None:
        """Write no more Events; the one that is next has `grace_s` to end."""
        if grace_s:
            await asyncio.sleep(0)  # The worker takes an Event that was recorded just now.
        await self._pool.close(grace_s)

    def _body(self, uid: str, is_warning: bool, reason: str, note: str) -> bytes:
        about = self._about
        name = event_name(about.name, uid, self._clock.unix_nanoseconds())
        return msgspec.json.encode(
            {
                "apiVersion": "events.k8s.io/v1",
                "kind": "Event",
                "metadata": {"name": name, "namespace": about.namespace},
                "eventTime": self._clock.timestamp_micro(),
                "reportingController": CONTROLLER,
                "reportingInstance": self._instance,
                "action": self._action,
                "reason": reason,
                "regarding": {**msgspec.to_builtins(about), "uid": uid},
                "note": cut_note(note),
                "type": "Warning" if is_warning else "Normal",
            }
        )

    async def _write(self, body: bytes) -> None:
        path = f"/apis/events.k8s.io/v1/namespaces/{self._about.namespace}/events"
        backoff = Backoff(self._clock.jitter, initial_s=0.5)
        try:
            await retry(
                lambda: self._client.post(path, body), backoff, self._clock.sleep, MAX_ATTEMPTS
            )
        except (ApiError, *LOST_ANSWER_ERRORS) as error:
            log.warning(
                "event not written",
                kind=self._about.kind,
                name=f"{self._about.namespace}/{self._about.name}",
                error=plain_message(error),
            )
