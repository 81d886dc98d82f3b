"""The flags of ``stowage run`` about the HTTPS endpoints and their access control."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from stowage.api.values.duration import Duration, parse_duration
from stowage.cli.go_flags import BOOLEAN, GoBool, parse_boolean

_SERVING = "HTTPS endpoints"

SecurePort: TypeAlias = Annotated[
    int,
    typer.Option(
        min=0,
        max=65535,
        metavar="PORT",
        help="HTTPS port of /healthz, /livez, /readyz, /metrics, /configz, /debug and /version; 0 "
        "disables them.",
        rich_help_panel=_SERVING,
    ),
]
BindAddress: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="ADDRESS",
        help="IP address that the port listens on; 0.0.0.0 and :: are all addresses of IPv4 and "
        "IPv6.",
        rich_help_panel=_SERVING,
    ),
]
PermitPortSharing: TypeAlias = Annotated[
    GoBool | None,
    typer.Option(
        "--permit-port-sharing",
        parser=parse_boolean,
        metavar=BOOLEAN,
        help="Let several processes listen on the port (SO_REUSEPORT).",
        show_default="false",
        rich_help_panel=_SERVING,
    ),
]
TlsCertFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        exists=True,
        dir_okay=False,
        metavar="FILE",
        help="Certificate (chain) in PEM, reloaded when it changes. Default: self-signed.",
        rich_help_panel=_SERVING,
    ),
]
TlsPrivateKeyFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        exists=True,
        dir_okay=False,
        metavar="FILE",
        help="Private key in PEM. Default: the file of --tls-cert-file.",
        rich_help_panel=_SERVING,
    ),
]
CertDir: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        file_okay=False,
        metavar="DIR",
        help="Directory of the self-signed certificate, used without --tls-cert-file. Default: "
        "the certificate is in memory only.",
        rich_help_panel=_SERVING,
    ),
]
AlwaysAllowPaths: TypeAlias = Annotated[
    str,
    typer.Option(
        "--authorization-always-allow-paths",
        metavar="PATHS",
        help="Comma-separated paths that need no authorization; a path ending in * is a prefix.",
        rich_help_panel=_SERVING,
    ),
]
TokenTtl: TypeAlias = Annotated[
    Duration | None,
    typer.Option(
        "--authentication-token-webhook-cache-ttl",
        parser=parse_duration,
        metavar="DURATION",
        help="How long the answer of a TokenReview is cached.",
        show_default="10s",
        rich_help_panel=_SERVING,
    ),
]
AuthorizedTtl: TypeAlias = Annotated[
    Duration | None,
    typer.Option(
        "--authorization-webhook-cache-authorized-ttl",
        parser=parse_duration,
        metavar="DURATION",
        help="How long an allowing answer of a SubjectAccessReview is cached.",
        show_default="10s",
        rich_help_panel=_SERVING,
    ),
]
UnauthorizedTtl: TypeAlias = Annotated[
    Duration | None,
    typer.Option(
        "--authorization-webhook-cache-unauthorized-ttl",
        parser=parse_duration,
        metavar="DURATION",
        help="How long a denying answer of a SubjectAccessReview is cached.",
        show_default="10s",
        rich_help_panel=_SERVING,
    ),
]
TlsMinVersion: TypeAlias = Annotated[
    str,
    typer.Option(
        "--tls-min-version",
        metavar="VERSION",
        help="Minimum TLS version: VersionTLS12 or VersionTLS13; older ones mean VersionTLS12.",
        rich_help_panel=_SERVING,
    ),
]
TlsCipherSuites: TypeAlias = Annotated[
    str,
    typer.Option(
        "--tls-cipher-suites",
        metavar="SUITES",
        help="Comma-separated cipher suites of TLS 1.2, with Go's names; those of TLS 1.3 are "
        "always enabled, those with RC4 and 3DES never.",
        show_default="OpenSSL's",
        rich_help_panel=_SERVING,
    ),
]
ClientCaFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--client-ca-file",
        exists=True,
        dir_okay=False,
        metavar="FILE",
        help="CA of client certificates, which authenticate the user of their common name.",
        rich_help_panel=_SERVING,
    ),
]
AuthenticationKubeconfig: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--authentication-kubeconfig",
        exists=True,
        dir_okay=False,
        metavar="FILE",
        help="Kubeconfig for TokenReviews.",
        show_default="--kubeconfig",
        rich_help_panel=_SERVING,
    ),
]
AuthorizationKubeconfig: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--authorization-kubeconfig",
        exists=True,
        dir_okay=False,
        metavar="FILE",
        help="Kubeconfig for SubjectAccessReviews.",
        show_default="--kubeconfig",
        rich_help_panel=_SERVING,
    ),
]
