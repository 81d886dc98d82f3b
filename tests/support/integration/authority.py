"""A certificate authority whose certificates have no authority key identifier."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID


class Authority:
    """A certificate authority that writes its certificates to files.

    Args:
        folder: The folder of its certificates.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ca")])
        self.file = folder / "ca.crt"
        ca = x509.BasicConstraints(ca=True, path_length=None)
        certificate = self._signed(self.name, self.key.public_key(), ca)
        self.file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def issue_client(self, user: str, *groups: str) -> Path:
        """Write a client certificate and its key to one file."""
        parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        name = x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, user)])
        return self._issue(name, user, x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]))

    def issue_server(self) -> Path:
        """Write a server certificate for 127.0.0.1 and its key to one file."""
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "server")])
        address = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
        return self._issue(name, "server", address)

    def server_context(self) -> ssl.SSLContext:
        """A TLS context of a server with a certificate for 127.0.0.1."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.issue_server())
        return context

    def _issue(self, name: x509.Name, file_name: str, extension: x509.ExtensionType) -> Path:
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._signed(name, key.public_key(), extension)
        file = self.folder / f"{file_name}.pem"
        file.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
            + certificate.public_bytes(serialization.Encoding.PEM)
        )
        return file

    def _signed(
        self, name: x509.Name, key: ec.EllipticCurvePublicKey, extension: x509.ExtensionType
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self.name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(hours=1))
            .add_extension(extension, critical=True)
            .sign(self.key, hashes.SHA256())
        )
