"""Kopf watches the ConfigMap with our configuration: in its namespace, by its name, no other."""

from __future__ import annotations

from collections.abc import Callable

import aiohttp
import msgspec

from stowage.operator.client.backoff import Jitter, Sleep
from stowage.operator.client.connection import Connection
from stowage.operator.configuration.config_map import ConfigMapReference
from stowage.operator.configuration.live_configuration import LiveConfiguration
from stowage.operator.kopf.runner import KopfRunner, Watched
from stowage.operator.kopf.settings import config_map_watching_settings


class _ConfigMapList(msgspec.Struct, frozen=True):
    items: list[msgspec.Raw] | None = None


_LIST_DECODER = msgspec.json.Decoder(_ConfigMapList)


class ConfigMapWatch:
    """A Kopf of its own, limited to one namespace: rights on one ConfigMap are all it needs.

    It goes on while the watch of pods begins anew because profiles came or went. An empty list
    says that the ConfigMap vanished while nobody watched; Kopf would not mention it.

    Args:
        connection: Kopf gets sessions of its own from it.
        config_map: Which one.
        configuration: Takes its versions.
        after_start: Called each time Kopf has started; it takes over the process's signal handlers.
        jitter: Random numbers in 0..1.
        sleep: Waits that many seconds.
    """

    def __init__(
        self,
        connection: Connection,
        config_map: ConfigMapReference,
        configuration: LiveConfiguration,
        after_start: Callable[[], None],
        jitter: Jitter,
        sleep: Sleep,
    ) -> None:
        self._configuration = configuration
        watched = Watched(
            "configmaps",
            config_map_watching_settings(config_map.name, jitter, connection.timeouts),
            configuration.take,
            self._read_lists_along,
            namespace=config_map.namespace,
        )
        self._runner = KopfRunner(connection, watched, after_start, jitter, sleep)

    async def run(self) -> None:
        """Watch until cancelled."""
        await self._runner.run()

    async def _read_lists_along(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        response = await handler(request)
        is_list = request.url.path.endswith("/configmaps") and "watch" not in request.url.query
        # The body stays in the response, where Kopf finds it.
        if is_list and response.ok and not _LIST_DECODER.decode(await response.read()).items:
            self._configuration.handle_missing()
        return response
