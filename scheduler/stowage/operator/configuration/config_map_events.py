"""Kubernetes Events on the ConfigMap, which report whether an edit was applied."""

from __future__ import annotations

import socket
from collections.abc import Callable

import msgspec
import structlog

from stowage.operator.client.api_client import LOST_ANSWER_ERRORS, ApiClient
from stowage.operator.client.api_error import ApiError
from stowage.operator.client.backoff import Backoff, Jitter, Sleep, retry
from stowage.operator.configuration.config_map import ConfigMapReference
from stowage.operator.writers.event_recorder import MAX_ATTEMPTS, EventClock, cut_note, event_name
from stowage.operator.writers.worker_pool import WorkerPool

CONTROLLER = "stowage"

log = structlog.get_logger("stowage.operator.configuration.config_map_events")


class ConfigMapEventRecorder:
    """Writes Events on the ConfigMap, one after the other; only the leader writes.

    Args:
        client: Client of the API server.
        config_map: The ConfigMap.
        clock: Clock for names and times.
        may_write: Whether this replica holds the lease.
        jitter: Returns random numbers in 0..1.
        sleep: Sleeps for a number of seconds.
    """

    def __init__(
        self,
        client: ApiClient,
        config_map: ConfigMapReference,
        clock: EventClock,
        may_write: Callable[[], bool],
        jitter: Jitter,
        sleep: Sleep,
    ) -> None:
        self._client = client
        self._config_map = config_map
        self._instance = f"{CONTROLLER}-{socket.gethostname()}"
        self._clock = clock
        self._may_write = may_write
        self._pool: WorkerPool[bytes] = WorkerPool("configuration events", 1, self._write)
        self._jitter = jitter
        self._sleep = sleep

    def record(self, uid: str, *, is_warning: bool, reason: str, note: str) -> None:
        """Write an Event when the worker is free."""
        if self._may_write():
            self._pool.add(self._body(uid, is_warning, reason, note))

    async def close(self, grace_s: float) -> None:
        """Write no more Events."""
        await self._pool.close(grace_s)

    def _body(self, uid: str, is_warning: bool, reason: str, note: str) -> bytes:
        config_map = self._config_map
        name = event_name(config_map.name, uid, self._clock.unix_nanoseconds())
        return msgspec.json.encode(
            {
                "apiVersion": "events.k8s.io/v1",
                "kind": "Event",
                "metadata": {"name": name, "namespace": config_map.namespace},
                "eventTime": self._clock.timestamp(),
                "reportingController": CONTROLLER,
                "reportingInstance": self._instance,
                "action": "Configuring",
                "reason": reason,
                "regarding": {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "namespace": config_map.namespace,
                    "name": config_map.name,
                    "uid": uid,
                },
                "note": cut_note(note),
                "type": "Warning" if is_warning else "Normal",
            }
        )

    async def _write(self, body: bytes) -> None:
        path = f"/apis/events.k8s.io/v1/namespaces/{self._config_map.namespace}/events"
        backoff = Backoff(self._jitter, initial_s=0.5)
        try:
            await retry(lambda: self._client.post(path, body), backoff, self._sleep, MAX_ATTEMPTS)
        except (ApiError, *LOST_ANSWER_ERRORS) as error:
            log.warning("event not written", config_map=str(self._config_map), error=repr(error))
