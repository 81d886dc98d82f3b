"""The flags of ``stowage run`` about HTTPS, and about who may read what it serves."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from stowage.api.values.duration import Duration, parse_duration

_SERVING = "Health and metrics"

CertDir: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        file_okay=False,
        metavar="DIR",
        help="Where the self-signed certificate is kept that is made when --tls-cert-file is not "
        "given. Without it the certificate is kept in memory.",
        rich_help_panel=_SERVING,
    ),
]
AlwaysAllowPaths: TypeAlias = Annotated[
    str,
    typer.Option(
        "--authorization-always-allow-paths",
        metavar="PATHS",
        help="Paths, separated by commas, served to anybody; one ending in * is a prefix.",
        rich_help_panel=_SERVING,
    ),
]
TokenTtl: TypeAlias = Annotated[
    Duration | None,
    typer.Option(
        "--authentication-token-webhook-cache-ttl",
        parser=parse_duration,
        metavar="DURATION",
        help="How long the answer of a TokenReview is believed.",
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
        help="How long the leave of a SubjectAccessReview is believed.",
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
        help="How long the refusal of a SubjectAccessReview is believed.",
        show_default="10s",
        rich_help_panel=_SERVING,
    ),
]
TlsMinVersion: TypeAlias = Annotated[
    str,
    typer.Option(
        "--tls-min-version",
        metavar="VERSION",
        help="VersionTLS12 or VersionTLS13.",
        rich_help_panel=_SERVING,
    ),
]
TlsCipherSuites: TypeAlias = Annotated[
    str,
    typer.Option(
        "--tls-cipher-suites",
        metavar="SUITES",
        help="Suites of TLS 1.2, separated by commas, by the names Go has for them; those of "
        "TLS 1.3 are always on.",
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
        help="Clients with a certificate of this authority are the user its common name says.",
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
        help="As whom to send TokenReviews.",
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
        help="As whom to send SubjectAccessReviews.",
        show_default="--kubeconfig",
        rich_help_panel=_SERVING,
    ),
]
