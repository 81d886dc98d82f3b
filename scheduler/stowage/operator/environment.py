"""The replaceable parts of a process: clock, Kopf watches, reader, extender clients."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Protocol

import msgspec

from stowage.api.config.loading import Extender
from stowage.operator.clock import Clock
from stowage.operator.configuration.reading import ConfigurationReader, ThreadReader
from stowage.operator.extenders.client import ExtenderClient
from stowage.operator.kopf.config_map_watch import ConfigMapWatch
from stowage.operator.kopf.pending_pod_watch import PendingPodWatch


class ConfigMapWatcher(Protocol):
    """Watches the ConfigMap with the configuration."""

    async def run(self) -> None:
        """Watch until cancelled."""
        ...


class PodWatcher(Protocol):
    """Watches the pending pods of our profiles."""

    async def run(self) -> None:
        """Watch until cancelled."""
        ...

    def select(self, scheduler_names: Collection[str]) -> None:
        """Watch the pods of these profiles from now on."""
        ...

    def reconnect(self, unresponsive_since: float | None) -> None:
        """Watch over a new connection, because the API server is back."""
        ...


class Environment(msgspec.Struct, frozen=True):
    """The parts of a process that a simulation replaces.

    Attributes:
        clock: Time and randomness.
        watch_pending_pods: Makes the watch of pending pods; same arguments as `PendingPodWatch`.
        watch_config_map: Makes the watch of the ConfigMap; same arguments as `ConfigMapWatch`.
        make_configuration_reader: Makes the reader of the versions of the ConfigMap.
        make_extender_client: Makes the client of an extender.
    """

    clock: Clock = msgspec.field(default_factory=Clock)
    watch_pending_pods: Callable[..., PodWatcher] = PendingPodWatch
    watch_config_map: Callable[..., ConfigMapWatcher] = ConfigMapWatch
    make_configuration_reader: Callable[[], ConfigurationReader] = ThreadReader
    make_extender_client: Callable[[Extender], ExtenderClient] = ExtenderClient


REAL_ENVIRONMENT = Environment()
