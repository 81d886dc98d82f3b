"""The certificate of the HTTPS endpoints: the given one, reread when it changes, or our own.

As in kube-scheduler: without ``--tls-cert-file`` a self-signed certificate is made, kept in
``--cert-dir`` if one is named, else forgotten when the process ends.
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
    """A TLS context that follows its files.

    Args:
        files: What to serve; None makes a self-signed certificate.
        cert_dir: Where that one is kept and found again; None keeps it in memory.
        host: What it is made out to, besides the host's own names.
        tls: What connections have to be like.

    Attributes:
        expires_at: When it runs out, in seconds since 1970.
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
        self.expires_at = 0.0
        self.context = tls.context()
        if files is not None:
            self._load(files)
        elif cert_dir is not None:
            self._load(self_signed_files(cert_dir, host))
        else:
            with tempfile.TemporaryDirectory(prefix="stowage-") as folder:
                self._load(self_signed_files(Path(folder), host))

    def reload(self) -> bool:
        """Load the given files again if they have changed; whether they have.

        New connections get the new certificate, the others keep theirs. Files that cannot be
        read, or that do not belong together, leave everything as it is: a rotation in progress
        is looked at again next time.
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
        # A failed load may leave a context half changed, so another one is tried first.
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(
            files.certificate, files.key
        )
        self.context.load_cert_chain(files.certificate, files.key)
        self.expires_at = _end_of(files.certificate)
        self._seen = seen


def _versions(files: CertificateFiles) -> tuple[bytes, ...]:
    paths = [files.certificate] if files.key is None else [files.certificate, files.key]
    # By content: two writes within one tick of the clock have the same time.
    return tuple(hashlib.sha256(path.read_bytes()).digest() for path in paths)


def _end_of(certificate: Path) -> float:
    # Whoever serves nothing need not load what reads certificates.
    from cryptography import x509  # noqa: PLC0415

    try:
        read = x509.load_pem_x509_certificate(certificate.read_bytes())
    except ValueError as error:
        # OpenSSL serves what this library is too strict to read.
        log.warning("end of the serving certificate not known", error=repr(error))
        return math.inf
    return read.not_valid_after_utc.timestamp()


def self_signed_files(folder: Path, host: str) -> CertificateFiles:
    """The pair in `folder`, made if it is not there.

    Raises:
        OSError: the folder cannot be written.
    """
    files = CertificateFiles(folder / f"{PAIR_NAME}.crt", folder / f"{PAIR_NAME}.key")
    key_path = folder / f"{PAIR_NAME}.key"
    if not (files.certificate.exists() and key_path.exists()):
        folder.mkdir(parents=True, exist_ok=True)
        # Whoever brings a certificate, or serves nothing, need not load what makes one.
        from stowage.operator.serving.self_signed import self_signed  # noqa: PLC0415

        certificate, key = self_signed(host)
        key_path.touch(mode=0o600)
        key_path.write_bytes(key)
        files.certificate.write_bytes(certificate)
    return files
