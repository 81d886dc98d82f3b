"""Kopf watches the ConfigMap with the configuration, selected by namespace and name."""

from __future__ import annotations

from collections.abc import Callable

import aiohttp
import msgspec

from stowage.operator.client.connection import Connection
from stowage.operator.clock import Clock
from stowage.operator.configuration.config_map import ConfigMapReference
from stowage.operator.configuration.live_configuration import LiveConfiguration
from stowage.operator.kopf.runner import KopfRunner, WatchSpec
from stowage.operator.kopf.settings import config_map_watching_settings


class _ConfigMapList(msgspec.Struct, frozen=True):
    items: list[msgspec.Raw] | None = None


_LIST_DECODER = msgspec.json.Decoder(_ConfigMapList)


class ConfigMapWatch:
    """Watches one ConfigMap with a Kopf of its own.

    An empty list means that the ConfigMap was deleted while no watch was open; Kopf does not
    report that.

    Args:
        connection: Makes Kopf's HTTP sessions.
        config_map: The ConfigMap.
        configuration: Receives the versions of the ConfigMap.
        after_start: Called after each start of Kopf, which replaces the signal handlers.
        clock: Time, sleep and jitter.
    """

    def __init__(
        self,
        connection: Connection,
        config_map: ConfigMapReference,
        configuration: LiveConfiguration,
        after_start: Callable[[], None],
        clock: Clock,
    ) -> None:
        self._configuration = configuration
        spec = WatchSpec(
            "configmaps",
            config_map_watching_settings(config_map.name, clock.jitter, connection.timeouts),
            configuration.handle_event,
            self._intercept_list,
            namespace=config_map.namespace,
        )
        self._runner = KopfRunner(connection, spec, after_start, clock)

    async def run(self) -> None:
        """Watch until cancelled."""
        await self._runner.run()

    async def _intercept_list(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        response = await handler(request)
        is_list = request.url.path.endswith("/configmaps") and "watch" not in request.url.query
        # The response keeps the body that was read, so Kopf reads it too.
        if is_list and response.ok and not _LIST_DECODER.decode(await response.read()).items:
            self._configuration.handle_missing()
        return response
