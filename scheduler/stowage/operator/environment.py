"""What a process finds outside of itself besides the API server."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Protocol

from stowage.api.config.loading import Extender
from stowage.operator.clock import Clock
from stowage.operator.extenders.client import ExtenderClient
from stowage.operator.kopf.config_map_watch import ConfigMapWatch
from stowage.operator.kopf.pending_pod_watch import PendingPodWatch


class ConfigMapWatcher(Protocol):
    """Who watches the ConfigMap with our configuration."""

    async def run(self) -> None:
        """Watch until cancelled."""
        ...


class PodWatcher(Protocol):
    """Who watches our pending pods."""

    async def run(self) -> None:
        """Watch until cancelled."""
        ...

    def select(self, scheduler_names: Collection[str]) -> None:
        """Watch for the pods of these profiles from now on."""
        ...

    def reconnect(self, unresponsive_since: float | None) -> None:
        """Go on over a connection that is known to be good."""
        ...


@dataclass(frozen=True, slots=True)
class Environment:
    """What a process finds outside of itself; a simulation gives it a world of its own.

    Attributes:
        clock: Time and randomness.
        watch_pending_pods: Makes the watch on pending pods, as `PendingPodWatch` is made.
        watch_config_map: Makes the watch on our ConfigMap, as `ConfigMapWatch` is made.
        make_extender_client: Makes the client of an extender.
    """

    clock: Clock = field(default_factory=Clock)
    watch_pending_pods: Callable[..., PodWatcher] = PendingPodWatch
    watch_config_map: Callable[..., ConfigMapWatcher] = ConfigMapWatch
    make_extender_client: Callable[[Extender], ExtenderClient] = ExtenderClient


REAL_ENVIRONMENT = Environment()
