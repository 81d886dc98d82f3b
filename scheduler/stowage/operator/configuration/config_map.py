"""References to the ConfigMap that holds the configuration, and its text."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from typing import Any

import msgspec

from stowage.api.config.loading import ConfigError, InvalidConfiguration
from stowage.operator import clock
from stowage.operator.client.api_client import LOST_ANSWER_ERRORS, ApiClient
from stowage.operator.client.api_error import ApiError
from stowage.operator.client.backoff import Backoff, retry
from stowage.operator.client.connection import Connection, connect
from stowage.operator.client.outage_log import plain_message

DEFAULT_KEY = "config.yaml"
READ_ATTEMPTS = 5


class ConfigMapReference(msgspec.Struct, frozen=True):
    """One key of one ConfigMap."""

    namespace: str
    name: str
    key: str = DEFAULT_KEY

    @property
    def path(self) -> str:
        """Path of the ConfigMap at the API server."""
        return f"/api/v1/namespaces/{self.namespace}/configmaps/{self.name}"

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}:{self.key}"


def parse_reference(text: str) -> ConfigMapReference:
    """Parse ``NAMESPACE/NAME`` or ``NAMESPACE/NAME:KEY``.

    Raises:
        InvalidConfiguration: the text has neither form.
    """
    namespace, _, rest = text.partition("/")
    name, colon, key = rest.partition(":")
    if not namespace or not name or "/" in name or (colon and not key):
        expectation = "NAMESPACE/NAME or NAMESPACE/NAME:KEY"
        raise InvalidConfiguration([ConfigError("--configmap", text, expectation)])
    return ConfigMapReference(namespace, name, key or DEFAULT_KEY)


def text_of(config_map: Mapping[str, Any], reference: ConfigMapReference) -> str:
    """The configuration's text in a ConfigMap.

    Raises:
        InvalidConfiguration: the ConfigMap does not have the key.
    """
    data: Mapping[str, str] = config_map.get("data") or {}
    text = data.get(reference.key)
    if text is None:
        expectation = f"the key {reference.key} with a KubeSchedulerConfiguration"
        raise InvalidConfiguration([ConfigError("data", sorted(data), expectation)])
    return text


def read_config_map(
    reference: ConfigMapReference,
    kubeconfig: str | None,
    master: str | None = None,
    context: str | None = None,
) -> str:
    """Read the configuration's text once, before the event loop of the scheduler starts.

    Args:
        reference: The ConfigMap and key.
        kubeconfig: Path; None for ``$KUBECONFIG``, ``~/.kube/config`` or in-cluster configuration.
        master: Address of the API server that replaces the kubeconfig's.
        context: Context of the kubeconfig; None for its current one.

    Raises:
        InvalidConfiguration: the ConfigMap or its key is missing, or the server refuses to read it.
        ConfigException: there is no usable kubeconfig, and the process is not in a cluster.
        OSError: the API server cannot be reached.
    """
    return asyncio.run(_read(reference, connect(kubeconfig, master=master, context=context)))


async def _read(reference: ConfigMapReference, connecting: Awaitable[Connection]) -> str:
    connection = await connecting
    try:
        client = ApiClient(connection)
        backoff = Backoff(clock.jitter, initial_s=0.2)
        body = await retry(
            lambda: client.get(reference.path), backoff, asyncio.sleep, READ_ATTEMPTS
        )
    except ApiError as refusal:
        expectation = f"a ConfigMap that can be read; {refusal}"
        raise InvalidConfiguration(
            [ConfigError("--configmap", str(reference), expectation)]
        ) from refusal
    except LOST_ANSWER_ERRORS as error:
        text = f"the API server at {connection.server} does not answer: {plain_message(error)}"
        raise OSError(text) from error
    finally:
        await connection.close()
    return text_of(msgspec.json.decode(body), reference)
