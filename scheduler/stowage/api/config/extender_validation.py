"""Validation of ``extenders`` in a configuration.

``validateExtenders`` of v1.36, and invalid URLs and TLS settings, which kube-scheduler reports when
it creates the client.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

from stowage.api.config.errors import ConfigError, without_credentials
from stowage.api.config.types import Extender, ExtenderTLSConfig
from stowage.api.values.resource_names import is_extended_resource_name
from stowage.api.values.selectors import key_error


def extender_errors(extenders: Sequence[Extender]) -> Iterator[ConfigError]:
    """All errors in ``extenders``."""
    first_manager: dict[str, str] = {}
    for index, extender in enumerate(extenders):
        path = f"extenders[{index}]"
        yield from _url_errors(path, extender)
        if extender.prioritize_verb and extender.weight <= 0:
            expectation = "greater than 0, as prioritizeVerb is set"
            yield ConfigError(f"{path}.weight", extender.weight, expectation)
        if extender.http_timeout < 0:
            yield ConfigError(f"{path}.httpTimeout", extender.http_timeout, "0s or longer")
        if extender.tls_config is not None:
            yield from _tls_errors(f"{path}.tlsConfig", extender.tls_config)
        yield from _managed_resource_errors(path, extender, first_manager)
    binders = [index for index, extender in enumerate(extenders) if extender.bind_verb]
    for index in binders[1:]:
        expectation = f"none: only one extender can bind, and extenders[{binders[0]}] does"
        yield ConfigError(f"extenders[{index}].bindVerb", extenders[index].bind_verb, expectation)


def _url_errors(path: str, extender: Extender) -> Iterator[ConfigError]:
    try:
        parts = urlsplit(extender.url_prefix)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname)
        # Reading the port validates it.
        is_usable = is_usable and parts.port != 0 and not parts.query and not parts.fragment
    except ValueError:
        is_usable = False
    if not is_usable:
        expectation = "an http:// or https:// URL with a host and without a query"
        shown = without_credentials(extender.url_prefix)
        yield ConfigError(f"{path}.urlPrefix", shown, expectation)


def _tls_errors(path: str, tls: ExtenderTLSConfig) -> Iterator[ConfigError]:
    """``rest.TLSConfigFor`` of client-go."""
    if tls.insecure and (tls.ca_file or tls.ca_data):
        yield ConfigError(f"{path}.insecure", True, "false, as a CA is given")
    has_cert = bool(tls.cert_file or tls.cert_data)
    has_key = bool(tls.key_file or tls.key_data)
    if has_cert and not has_key:
        yield ConfigError(f"{path}.keyFile", tls.key_file, "a key, as a certificate is given")
    if has_key and not has_cert:
        yield ConfigError(f"{path}.certFile", tls.cert_file, "a certificate, as a key is given")


def _managed_resource_errors(
    path: str, extender: Extender, first_manager: dict[str, str]
) -> Iterator[ConfigError]:
    for index, resource in enumerate(extender.managed_resources):
        where = f"{path}.managedResources[{index}].name"
        if key_error(resource.name) or not is_extended_resource_name(resource.name):
            yield ConfigError(where, resource.name, "an extended resource such as example.com/foo")
        elif resource.name in first_manager:
            expectation = f"a resource of its own, {first_manager[resource.name]} is the same"
            yield ConfigError(where, resource.name, expectation)
        first_manager.setdefault(resource.name, where)
