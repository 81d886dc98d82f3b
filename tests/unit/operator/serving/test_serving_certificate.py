"""The serving certificate: read from files and reloaded, or self-signed."""

from __future__ import annotations

import math
import os
import socket
import ssl
import stat
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from structlog.testing import capture_logs

from stowage.operator.serving.self_signed import self_signed
from stowage.operator.serving.serving_certificate import (
    CertificateFiles,
    ServingCertificate,
    self_signed_files,
)


def _write(folder: Path, host: str = "h1") -> CertificateFiles:
    certificate, key = self_signed(host)
    files = CertificateFiles(folder / "tls.crt", folder / "tls.key")
    files.certificate.write_bytes(certificate)
    (folder / "tls.key").write_bytes(key)
    return files


def test_a_self_signed_certificate_names_localhost_and_the_host() -> None:
    certificate = x509.load_pem_x509_certificate(self_signed("10.1.2.3")[0])
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert "localhost" in names.get_values_for_type(x509.DNSName)
    addresses = [str(each) for each in names.get_values_for_type(x509.IPAddress)]
    assert set(addresses) == {"127.0.0.1", "::1", "10.1.2.3"}


def test_a_self_signed_certificate_is_for_servers_for_a_year_and_signs_no_others() -> None:
    before = datetime.now(UTC)
    pem, key_pem = self_signed("scheduler.example.com")
    certificate = x509.load_pem_x509_certificate(pem)
    key = serialization.load_pem_private_key(key_pem, None)
    assert certificate.public_key() == key.public_key()
    (name,) = certificate.subject
    assert (name.oid, name.value) == (
        NameOID.COMMON_NAME,
        f"stowage@{socket.gethostname()}"[:64],
    )
    assert certificate.issuer == certificate.subject
    begin, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    assert end - begin == timedelta(days=365, hours=1)
    assert abs(begin - (before - timedelta(hours=1))) < timedelta(minutes=5)
    found = [(each.value, each.critical) for each in certificate.extensions]
    names, *others = found
    assert "scheduler.example.com" in names[0].get_values_for_type(x509.DNSName)
    assert not names[1]
    assert others == [
        (x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), False),
        (x509.BasicConstraints(ca=False, path_length=None), True),
    ]


def test_a_certificate_in_memory_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert ServingCertificate(None, None, "0.0.0.0").context.minimum_version is (
        ssl.TLSVersion.TLSv1_2
    )
    assert list(tmp_path.iterdir()) == []


def test_a_self_signed_certificate_in_a_directory_is_used_again(tmp_path: Path) -> None:
    folder = tmp_path / "certificates"
    files = self_signed_files(folder, "0.0.0.0")
    first = files.certificate.read_bytes()
    assert stat.S_IMODE((folder / "stowage.key").stat().st_mode) == 0o600
    assert self_signed_files(folder, "0.0.0.0").certificate.read_bytes() == first
    assert not ServingCertificate(None, folder, "0.0.0.0").reload()


def test_a_self_signed_certificate_in_a_directory_names_the_address_that_is_served(
    tmp_path: Path,
) -> None:
    ServingCertificate(None, tmp_path, "10.1.2.3")
    certificate = x509.load_pem_x509_certificate((tmp_path / "stowage.crt").read_bytes())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert "10.1.2.3" in [str(each) for each in names.get_values_for_type(x509.IPAddress)]


def test_changed_files_are_reloaded(tmp_path: Path) -> None:
    files = _write(tmp_path)
    served = ServingCertificate(files, None, "")
    assert not served.reload()
    _write(tmp_path, "h2")
    with capture_logs() as lines:
        assert served.reload()
    file = str(tmp_path / "tls.crt")
    assert lines == [
        {"event": "serving certificate reloaded", "certificate": file, "log_level": "info"}
    ]
    assert not served.reload()


def test_files_that_do_not_match_keep_the_old_certificate(tmp_path: Path) -> None:
    files = _write(tmp_path)
    served = ServingCertificate(files, None, "")
    key = tmp_path / "tls.key"
    key.write_bytes(self_signed("h2")[1])
    with capture_logs() as lines:
        assert not served.reload()
    (line,) = lines
    assert (line["log_level"], line["event"]) == ("warning", "serving certificate not reloaded")
    assert "KEY_VALUES_MISMATCH" in line["error"]
    key.unlink()
    assert not served.reload()
    _write(tmp_path, "h3")
    assert served.reload()


def test_the_expiry_is_read_if_the_certificate_can_be_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = _write(tmp_path)
    end = x509.load_pem_x509_certificate(files.certificate.read_bytes()).not_valid_after_utc
    assert ServingCertificate(files, None, "").expires_at == end.timestamp()

    def raise_error(_pem: bytes) -> x509.Certificate:
        raise ValueError("a serial number below zero")

    monkeypatch.setattr(x509, "load_pem_x509_certificate", raise_error)
    with capture_logs() as lines:
        assert ServingCertificate(files, None, "").expires_at == math.inf
    (line,) = lines
    assert line["event"] == "end of the serving certificate not known"
    assert "a serial number below zero" in line["error"]


def test_a_missing_file_is_an_error_at_the_start(tmp_path: Path) -> None:
    files = CertificateFiles(tmp_path / "nosuch.crt", None)
    with pytest.raises(OSError, match=os.strerror(2)):
        ServingCertificate(files, None, "")


@pytest.mark.parametrize("name", ["localhost", None])
def test_clients_get_one_self_signed_certificate_made_when_the_first_connects(
    name: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    served = ServingCertificate(None, None, "0.0.0.0")
    assert served.expires_at == 0
    first, second = (_certificate_of(served.context, name) for _ in range(2))
    assert first == second
    end = x509.load_der_x509_certificate(first).not_valid_after_utc
    assert served.expires_at == end.timestamp()
    assert list(tmp_path.iterdir()) == []


def test_a_client_is_refused_while_no_self_signed_certificate_can_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    served = ServingCertificate(None, None, "0.0.0.0")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    with capture_logs() as lines, pytest.raises(ssl.SSLError):
        _certificate_of(served.context, None)
    assert [line["event"] for line in lines] == ["self-signed certificate not made"]
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert _certificate_of(served.context, None)


def _certificate_of(context: ssl.SSLContext, name: str | None) -> bytes:
    """What a client receives that connects without I/O, with a server name or without."""
    client_context = ssl.create_default_context()
    client_context.check_hostname = False
    client_context.verify_mode = ssl.CERT_NONE
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = context.wrap_bio(to_server, to_client, server_side=True)
    client = client_context.wrap_bio(to_client, to_server, server_hostname=name)
    for side in (client, server, client, server):
        with suppress(ssl.SSLWantReadError):
            side.do_handshake()
    received = client.getpeercert(binary_form=True)
    assert received is not None
    return received
