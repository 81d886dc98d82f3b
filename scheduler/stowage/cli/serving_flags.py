"""The flags of ``stowage run`` about the HTTPS endpoints and their access control."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from stowage.api.values.duration import Duration
from stowage.cli.flag_groups import FlagGroup, Panel
from stowage.cli.go_flags import GoBool

_SERVING = Panel("HTTPS endpoints")


class ServingFlags(FlagGroup, frozen=True):
    """The flags about the HTTPS endpoints."""

    secure_port: Annotated[
        int,
        _SERVING.option(
            min=0,
            max=65535,
            metavar="PORT",
            help="HTTPS port of the endpoints, such as /readyz, /metrics and /debug/queue; 0 "
            "disables them.",
        ),
    ] = 10259
    bind_address: Annotated[
        str,
        _SERVING.option(
            metavar="ADDRESS",
            help="IP address that the port listens on; 0.0.0.0 and :: are all addresses of IPv4 "
            "and IPv6.",
        ),
    ] = "0.0.0.0"  # noqa: S104 - as kube-scheduler
    permit_port_sharing: Annotated[
        GoBool | None,
        _SERVING.boolean(
            help="Let several processes listen on the port (SO_REUSEPORT).", show_default="false"
        ),
    ] = None
    tls_cert_file: Annotated[
        Path | None,
        _SERVING.file(
            help="Certificate (chain) in PEM, reloaded when it changes. Default: self-signed."
        ),
    ] = None
    tls_private_key_file: Annotated[
        Path | None,
        _SERVING.file(help="Private key in PEM. Default: the file of --tls-cert-file."),
    ] = None
    cert_dir: Annotated[
        Path | None,
        _SERVING.option(
            file_okay=False,
            metavar="DIR",
            help="Directory of the self-signed certificate, used without --tls-cert-file. Default: "
            "the certificate is in memory only.",
        ),
    ] = None
    tls_min_version: Annotated[
        str,
        _SERVING.option(
            metavar="VERSION",
            help="Minimum TLS version: VersionTLS12 or VersionTLS13; older ones mean VersionTLS12.",
        ),
    ] = "VersionTLS12"
    tls_cipher_suites: Annotated[
        str,
        _SERVING.option(
            metavar="SUITES",
            help="Comma-separated cipher suites of TLS 1.2, with Go's names; those of TLS 1.3 are "
            "always enabled, those with RC4 and 3DES never.",
            show_default="OpenSSL's",
        ),
    ] = ""
    client_ca_file: Annotated[
        Path | None,
        _SERVING.file(
            help="CA of client certificates, which authenticate the user of their common name."
        ),
    ] = None
    authentication_kubeconfig: Annotated[
        Path | None,
        _SERVING.file(help="Kubeconfig for TokenReviews.", show_default="--kubeconfig"),
    ] = None
    authorization_kubeconfig: Annotated[
        Path | None,
        _SERVING.file(help="Kubeconfig for SubjectAccessReviews.", show_default="--kubeconfig"),
    ] = None
    authorization_always_allow_paths: Annotated[
        str,
        _SERVING.option(
            metavar="PATHS",
            help="Comma-separated paths that need no authorization; a path ending in * is a "
            "prefix.",
        ),
    ] = "/healthz,/readyz,/livez"
    authentication_token_webhook_cache_ttl: Annotated[
        Duration | None,
        _SERVING.duration(
            help="How long the answer of a TokenReview is cached.", show_default="10s"
        ),
    ] = None
    authorization_webhook_cache_authorized_ttl: Annotated[
        Duration | None,
        _SERVING.duration(
            help="How long an allowing answer of a SubjectAccessReview is cached.",
            show_default="10s",
        ),
    ] = None
    authorization_webhook_cache_unauthorized_ttl: Annotated[
        Duration | None,
        _SERVING.duration(
            help="How long a denying answer of a SubjectAccessReview is cached.",
            show_default="10s",
        ),
    ] = None
