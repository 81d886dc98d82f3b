"""TLS options with Go's names, as in ``--tls-min-version`` and ``--tls-cipher-suites``."""

from __future__ import annotations

import ssl
from pathlib import Path

import msgspec

from stowage.operator.client.tls import without_strict_x509

MIN_VERSIONS = {
    "VersionTLS10": ssl.TLSVersion.TLSv1_2,
    "VersionTLS11": ssl.TLSVersion.TLSv1_2,
    "VersionTLS12": ssl.TLSVersion.TLSv1_2,
    "VersionTLS13": ssl.TLSVersion.TLSv1_3,
}
"""OpenSSL refuses versions before 1.2 at its default security level."""

_ECDHE = {
    "AES_128_CBC_SHA": "AES128-SHA",
    "AES_256_CBC_SHA": "AES256-SHA",
    "AES_128_CBC_SHA256": "AES128-SHA256",
    "AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "CHACHA20_POLY1305_SHA256": "CHACHA20-POLY1305",
    "CHACHA20_POLY1305": "CHACHA20-POLY1305",
}
_RSA = {suite: name for suite, name in _ECDHE.items() if "CHACHA20" not in suite}
CIPHER_SUITES = {
    f"TLS_ECDHE_{signature}_WITH_{suite}": f"ECDHE-{signature}-{name}"
    for signature in ("ECDSA", "RSA")
    for suite, name in _ECDHE.items()
} | {f"TLS_RSA_WITH_{suite}": name for suite, name in _RSA.items()}
"""Go's name -> OpenSSL's, for TLS 1.2."""
TLS_13_SUITES = frozenset(
    {"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"}
)
"""Suites of TLS 1.3: accepted as values and always enabled, as in Go."""
REMOVED_SUITES = frozenset(
    {
        "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA",
        "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA",
        "TLS_ECDHE_RSA_WITH_RC4_128_SHA",
        "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
        "TLS_RSA_WITH_RC4_128_SHA",
    }
)
"""Suites that Go has and OpenSSL no longer has: accepted as values and never enabled."""
_KNOWN_SUITES = CIPHER_SUITES.keys() | TLS_13_SUITES | REMOVED_SUITES


class TlsOptions(msgspec.Struct, frozen=True, kw_only=True):
    """TLS options of the endpoints.

    Attributes:
        min_version: A key of `MIN_VERSIONS`.
        cipher_suites: Some of all suites above; empty for OpenSSL's default.
        client_ca_file: CA of client certificates, which authenticate their common name.

    Raises:
        ValueError: a name is unknown.
    """

    min_version: str = "VersionTLS12"
    cipher_suites: tuple[str, ...] = ()
    client_ca_file: Path | None = None

    def __post_init__(self) -> None:
        if self.min_version not in MIN_VERSIONS:
            raise ValueError(f"one of {', '.join(MIN_VERSIONS)}, not {self.min_version}")
        for suite in self.cipher_suites:
            if suite not in _KNOWN_SUITES:
                raise ValueError(f"some of {', '.join(sorted(_KNOWN_SUITES))}, not {suite}")

    def without_effect(self) -> tuple[str, ...]:
        """The flags of these options whose values are not followed, with the reason."""
        texts = [
            f"--tls-cipher-suites={suite}: OpenSSL no longer has this suite"
            for suite in self.cipher_suites
            if suite in REMOVED_SUITES
        ]
        if self.min_version in ("VersionTLS10", "VersionTLS11"):
            texts.append(f"--tls-min-version={self.min_version}: TLS 1.2 is the oldest version")
        return tuple(texts)

    def context(self) -> ssl.SSLContext:
        """A server context without a certificate.

        Raises:
            OSError: the client CA cannot be read or used.
        """
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.minimum_version = MIN_VERSIONS[self.min_version]
        chosen = [CIPHER_SUITES[suite] for suite in self.cipher_suites if suite in CIPHER_SUITES]
        if chosen:
            context.set_ciphers(":".join(chosen))
        elif self.cipher_suites:
            context.minimum_version = ssl.TLSVersion.TLSv1_3  # no suite of TLS 1.2 is left
        if self.client_ca_file is not None:
            context.load_verify_locations(cafile=self.client_ca_file)
            # A client without certificate needs a token; an invalid certificate is refused.
            context.verify_mode = ssl.CERT_OPTIONAL
        return without_strict_x509(context)
