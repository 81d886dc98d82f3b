"""Kopf's settings: it stores nothing, writes nothing and retries forever."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import kopf
from kopf._core.reactor.inventory import ResourceMemories, ResourceMemory

from stowage.operator.client.backoff import Backoff
from stowage.operator.client.connection import DEFAULT_TIMEOUTS
from stowage.operator.client.timeouts import CONNECT_WITHIN_S, Timeouts
from stowage.operator.clock import Jitter

PAGE_SIZE = 500
WORKER_IDLE_S = 0.1
"""How long Kopf keeps a worker (23 KiB) for a pod without events."""


def pod_watching_settings(
    field_selector: str, jitter: Jitter, timeouts: Timeouts = DEFAULT_TIMEOUTS
) -> kopf.OperatorSettings:
    """Settings for watching the selected pods and nothing else."""
    settings = _quiet_settings(jitter, timeouts)
    select_pods(settings, field_selector)
    return settings


def select_pods(settings: kopf.OperatorSettings, field_selector: str) -> None:
    """Select other pods from Kopf's next start on."""
    settings.watching.field_selectors["", "v1", "pods"] = field_selector


def config_map_watching_settings(
    name: str, jitter: Jitter, timeouts: Timeouts = DEFAULT_TIMEOUTS
) -> kopf.OperatorSettings:
    """Settings for watching the ConfigMap of that name and nothing else."""
    settings = _quiet_settings(jitter, timeouts)
    settings.watching.field_selectors["", "v1", "configmaps"] = f"metadata.name={name}"
    return settings


def _quiet_settings(jitter: Jitter, timeouts: Timeouts) -> kopf.OperatorSettings:
    """Settings with which Kopf only watches: it writes nothing and retries forever."""
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.scanning.disabled = True
    settings.persistence.diffbase_storage = _NoDiffBase()
    settings.persistence.progress_storage = _NoProgress()
    settings.queueing.idle_timeout = WORKER_IDLE_S
    settings.watching.chunk_size = PAGE_SIZE
    settings.watching.server_timeout = timeouts.watch_timeout_s(jitter())
    settings.watching.inactivity_timeout = timeouts.watch_idle_s
    settings.networking.request_timeout = timeouts.list_timeout.total
    settings.networking.connect_timeout = CONNECT_WITHIN_S
    settings.networking.error_backoffs = _EndlessBackoffs(jitter, timeouts.max_backoff_s)
    settings.process.ultimate_exiting_timeout = None
    return settings


class NoMemory(ResourceMemories):
    """Kopf keeps no memory of an object between two events.

    Otherwise it would keep a memory of each pod forever, because it gets no DELETED events. The
    base class has no public name, but `kopf.spawn_tasks` takes an instance.
    """

    async def recall(self, raw_body: Any, **options: Any) -> ResourceMemory:
        """A new memory each time."""
        return await super().recall(raw_body, **{**options, "ephemeral": True})


class _NoDiffBase(kopf.DiffBaseStorage):
    """Kopf stores no last-seen state: no handler needs the difference."""

    def build(self, *, body: Any, extra_fields: Any = None) -> Any:  # noqa: ARG002 - Kopf's signature
        return {}

    def fetch(self, *, body: Any) -> Any:  # noqa: ARG002 - Kopf's signature
        return None

    def store(self, *, body: Any, patch: Any, essence: Any) -> None:
        """Store nothing."""


class _NoProgress(kopf.ProgressStorage):
    """Kopf stores no handler progress: event handlers have none."""

    def fetch(self, *, key: Any, body: Any) -> Any:  # noqa: ARG002 - Kopf's signature
        return None

    def store(self, *, key: Any, record: Any, body: Any, patch: Any) -> None:
        """Store nothing."""

    def purge(self, *, key: Any, body: Any, patch: Any) -> None:
        """Purge nothing."""

    def touch(self, *, body: Any, patch: Any, value: Any) -> None:
        """Touch nothing."""

    def clear(self, *, essence: Any) -> Any:
        return essence


class _EndlessBackoffs:
    """Delays between Kopf's retries of a request; Kopf gives up only when they end."""

    def __init__(self, jitter: Jitter, max_s: float) -> None:
        self._jitter = jitter
        self._max_s = max_s

    def __iter__(self) -> Iterator[float]:
        backoff = Backoff(self._jitter, 0.5, self._max_s)
        while True:
            yield backoff.next_delay()
