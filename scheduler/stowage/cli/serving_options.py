"""From the flags of the HTTPS endpoints to the options of the server."""

from __future__ import annotations

from pathlib import Path

from stowage.api.config.loading import ConfigError, InvalidConfiguration
from stowage.cli.go_flags import is_true
from stowage.cli.serving_flags import ServingFlags
from stowage.operator.serving.delegated_access import AccessOptions
from stowage.operator.serving.listening_socket import parse_bind_address
from stowage.operator.serving.server import ServingOptions
from stowage.operator.serving.tls_options import TlsOptions

DEFAULT_REVIEW_TTL_S = 10.0
"""kube-scheduler's default of all three cache TTLs."""


def make_serving_options(flags: ServingFlags) -> ServingOptions | None:
    """The options of the server; None for port 0.

    Raises:
        InvalidConfiguration: the address, a path, TLS version or cipher suite is invalid.
    """
    if flags.secure_port == 0:
        return None
    return ServingOptions(
        bind_address=_bind_address(flags.bind_address),
        port=flags.secure_port,
        permit_port_sharing=is_true(flags.permit_port_sharing) or False,
        tls_cert_file=_text(flags.tls_cert_file),
        tls_private_key_file=_text(flags.tls_private_key_file),
        cert_dir=_text(flags.cert_dir),
        access=_access_options(flags),
        tls=_tls_options(flags),
    )


def _bind_address(text: str) -> str:
    try:
        return parse_bind_address(text)
    except ValueError as error:
        raise _invalid("--bind-address", text, error) from error


def _access_options(flags: ServingFlags) -> AccessOptions:
    paths = flags.authorization_always_allow_paths
    try:
        return AccessOptions(
            always_allow_paths=_items(paths),
            token_ttl_s=_ttl(flags.authentication_token_webhook_cache_ttl),
            authorized_ttl_s=_ttl(flags.authorization_webhook_cache_authorized_ttl),
            unauthorized_ttl_s=_ttl(flags.authorization_webhook_cache_unauthorized_ttl),
            authentication_kubeconfig=_text(flags.authentication_kubeconfig),
            authorization_kubeconfig=_text(flags.authorization_kubeconfig),
        )
    except ValueError as error:
        raise _invalid("--authorization-always-allow-paths", paths, error) from error


def _tls_options(flags: ServingFlags) -> TlsOptions:
    version, suites = flags.tls_min_version, flags.tls_cipher_suites
    try:
        TlsOptions(min_version=version)
    except ValueError as error:
        raise _invalid("--tls-min-version", version, error) from error
    try:
        return TlsOptions(
            min_version=version,
            cipher_suites=_items(suites),
            client_ca_file=flags.client_ca_file,
        )
    except ValueError as error:
        raise _invalid("--tls-cipher-suites", suites, error) from error


def _invalid(flag: str, value: str, error: ValueError) -> InvalidConfiguration:
    return InvalidConfiguration([ConfigError(flag, value, str(error))])


def _items(text: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in text.split(",") if item.strip())


def _text(path: Path | None) -> str | None:
    return str(path) if path else None


def _ttl(seconds: float | None) -> float:
    return DEFAULT_REVIEW_TTL_S if seconds is None else seconds
