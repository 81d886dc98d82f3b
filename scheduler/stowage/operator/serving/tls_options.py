"""TLS as ``--tls-min-version`` and ``--tls-cipher-suites`` say it, in the names of Go."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

from stowage.operator.client.tls import without_strict_x509

MIN_VERSIONS = {
    "VersionTLS12": ssl.TLSVersion.TLSv1_2,
    "VersionTLS13": ssl.TLSVersion.TLSv1_3,
}
"""Older ones OpenSSL refuses at its default level of security."""

_ECDHE = {
    "AES_128_CBC_SHA": "AES128-SHA",
    "AES_256_CBC_SHA": "AES256-SHA",
    "AES_128_CBC_SHA256": "AES128-SHA256",
    "AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "CHACHA20_POLY1305_SHA256": "CHACHA20-POLY1305",
    "CHACHA20_POLY1305": "CHACHA20-POLY1305",
}
CIPHER_SUITES = {
    f"TLS_ECDHE_{signature}_WITH_{suite}": f"ECDHE-{signature}-{name}"
    for signature in ("ECDSA", "RSA")
    for suite, name in _ECDHE.items()
}
"""Go's name -> OpenSSL's, for TLS 1.2."""
TLS_13_SUITES = frozenset(
    {"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"}
)
"""Accepted and always on, as in Go: those of TLS 1.3 are not chosen from."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TlsOptions:
    """What TLS connections have to be like.

    Attributes:
        min_version: A key of `MIN_VERSIONS`.
        cipher_suites: Keys of `CIPHER_SUITES` or members of `TLS_13_SUITES`; none for OpenSSL's.
        client_ca_file: Clients with a certificate of this authority are who it says they are.

    Raises:
        ValueError: A name is not known.
    """

    min_version: str = "VersionTLS12"
    cipher_suites: tuple[str, ...] = ()
    client_ca_file: Path | None = None

    def __post_init__(self) -> None:
        if self.min_version not in MIN_VERSIONS:
            raise ValueError(f"one of {', '.join(MIN_VERSIONS)}, not {self.min_version}")
        for suite in self.cipher_suites:
            if suite not in CIPHER_SUITES and suite not in TLS_13_SUITES:
                known = ", ".join([*CIPHER_SUITES, *sorted(TLS_13_SUITES)])
                raise ValueError(f"some of {known}, not {suite}")

    def context(self) -> ssl.SSLContext:
        """A server's context without a certificate.

        Raises:
            OSError: The client CA cannot be read or used.
        """
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.minimum_version = MIN_VERSIONS[self.min_version]
        chosen = [CIPHER_SUITES[suite] for suite in self.cipher_suites if suite in CIPHER_SUITES]
        if chosen:
            context.set_ciphers(":".join(chosen))
        if self.client_ca_file is not None:
            context.load_verify_locations(cafile=self.client_ca_file)
            # Who shows none is asked for a token; who shows a wrong one gets no connection.
            context.verify_mode = ssl.CERT_OPTIONAL
        return without_strict_x509(context)
