"""The certificate of the HTTPS endpoints: given files, reloaded when they change, or self-signed.

As in kube-scheduler, a self-signed certificate is used without ``--tls-cert-file``. It is stored in
``--cert-dir`` if given, otherwise in memory only. The latter is made when the first client
connects, because importing ``cryptography`` is a large part of a start.
"""

from __future__ import annotations

import hashlib
import math
import ssl
import tempfile
from pathlib import Path

import msgspec
import structlog

from stowage.operator.serving.tls_options import TlsOptions

PAIR_NAME = "stowage"
DEFAULT_TLS = TlsOptions()

log = structlog.get_logger("stowage.operator.serving.serving_certificate")


class CertificateFiles(msgspec.Struct, frozen=True):
    """PEM files; the key is None if it is in the certificate's file."""

    certificate: Path
    key: Path | None


class ServingCertificate:
    """A TLS context whose certificate can be reloaded.

    Args:
        files: The certificate's files; None for a self-signed certificate.
        cert_dir: Directory of the self-signed certificate; None keeps it in memory.
        host: Name of the self-signed certificate, besides the host's own names.
        tls: TLS versions, cipher suites and client CA.

    Attributes:
        context: The TLS context.

    Raises:
        OSError: a file cannot be read, written or used.
    """

    def __init__(
        self,
        files: CertificateFiles | None,
        cert_dir: Path | None,
        host: str,
        tls: TlsOptions = DEFAULT_TLS,
    ) -> None:
        self._files = files
        self._seen: tuple[bytes, ...] = ()
        self._pem = b""
        self._expires_at: float | None = 0.0
        self._host = host
        self.context = self._first_context = tls.context()
        if files is not None:
            self._load(files)
        elif cert_dir is not None:
            self._load(self_signed_files(cert_dir, host))
        else:
            tempfile.gettempdir()  # raises OSError now rather than later
            self._first_context = tls.context()
            self.context.sni_callback = self._make_self_signed

    @property
    def expires_at(self) -> float:
        """Expiry time in seconds since 1970; infinity if unknown; 0 without a certificate yet."""
        if self._expires_at is None:
            self._expires_at = _expiry_of(self._pem)
        return self._expires_at

    def reload(self) -> bool:
        """Reload the given files if they have changed; returns whether they were reloaded.

        New connections get the new certificate. If the files cannot be read or do not match, e.g.
        during a rotation, the old certificate stays until the next call.
        """
        if self._files is None:
            return False
        try:
            if _versions(self._files) == self._seen:
                return False
            self._load(self._files)
        except (OSError, ssl.SSLError) as error:
            log.warning("serving certificate not reloaded", error=repr(error))
            return False
        log.info("serving certificate reloaded", certificate=str(self._files.certificate))
        return True

    def _load(self, files: CertificateFiles) -> None:
        seen = _versions(files)
        # A failed load may leave a context in a mixed state, so try the files on another first.
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(
            files.certificate, files.key
        )
        self.context.load_cert_chain(files.certificate, files.key)
        self._pem = files.certificate.read_bytes()
        self._expires_at = None
        self._seen = seen

    def _make_self_signed(
        self, connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext
    ) -> int | None:
        """Make the certificate for this connection and all later ones; returns a TLS alert or None.

        OpenSSL calls it after the client's first message, with or without a server name in it.
        """
        try:
            with tempfile.TemporaryDirectory(prefix="stowage-") as folder:
                files = self_signed_files(Path(folder), self._host)
                self._load(files)
                self._first_context.load_cert_chain(files.certificate, files.key)
        except (OSError, ssl.SSLError) as error:
            log.warning("self-signed certificate not made", error=repr(error))
            return ssl.ALERT_DESCRIPTION_INTERNAL_ERROR
        # Loading does not change a connection that exists; another context does.
        connection.context = self._first_context
        self.context.sni_callback = None
        return None


def _versions(files: CertificateFiles) -> tuple[bytes, ...]:
    paths = [files.certificate] if files.key is None else [files.certificate, files.key]
    # Compare contents: two writes within one tick of the clock have the same modification time.
    return tuple(hashlib.sha256(path.read_bytes()).digest() for path in paths)


def _expiry_of(certificate: bytes) -> float:
    # Imported late: not needed before the first scrape.
    from cryptography import x509  # noqa: PLC0415

    try:
        read = x509.load_pem_x509_certificate(certificate)
    except ValueError as error:
        # OpenSSL accepts certificates that this stricter library refuses.
        log.warning("end of the serving certificate not known", error=repr(error))
        return math.inf
    return read.not_valid_after_utc.timestamp()


def self_signed_files(folder: Path, host: str) -> CertificateFiles:
    """The self-signed certificate and key in `folder`; makes them if they do not exist.

    Raises:
        OSError: the folder cannot be written.
    """
    files = CertificateFiles(folder / f"{PAIR_NAME}.crt", folder / f"{PAIR_NAME}.key")
    key_path = folder / f"{PAIR_NAME}.key"
    if not (files.certificate.exists() and key_path.exists()):
        folder.mkdir(parents=True, exist_ok=True)
        # Imported late: not needed with a given certificate.
        from stowage.operator.serving.self_signed import self_signed  # noqa: PLC0415

        certificate, key = self_signed(host)
        key_path.touch(mode=0o600)
        key_path.write_bytes(key)
        files.certificate.write_bytes(certificate)
    return files
