"""The flags of `stowage run` about HTTPS, access and the API server."""

from __future__ import annotations

from pathlib import Path

import pytest

from stowage.operator.run_options import RunOptions
from stowage.operator.serving.server import ServingOptions
from tests.support.run_command import run_command

HEADER = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def _serving(started: list[RunOptions]) -> ServingOptions:
    serving = started[0].serving
    assert serving is not None
    return serving


def test_by_default_only_health_is_open_and_requests_are_not_limited(
    started: list[RunOptions],
) -> None:
    assert run_command() == (0, "")
    serving = _serving(started)
    assert (serving.tls_cert_file, serving.cert_dir) == (None, None)
    assert serving.access.always_allow_paths == ("/healthz", "/readyz", "/livez")
    assert serving.access.token_ttl_s == serving.access.authorized_ttl_s == 10.0
    assert (started[0].master, started[0].kube_api_qps) == (None, 0.0)


def test_access_is_configured_as_in_kube_scheduler(
    started: list[RunOptions], tmp_path: Path
) -> None:
    flags = (
        "--authorization-always-allow-paths=/livez, /metrics*",
        "--authentication-token-webhook-cache-ttl=1m",
        "--authorization-webhook-cache-authorized-ttl=5s",
        "--authorization-webhook-cache-unauthorized-ttl=0s",
        f"--cert-dir={tmp_path}",
    )
    assert run_command(*flags) == (0, "")
    serving = _serving(started)
    assert serving.cert_dir == str(tmp_path)
    access = serving.access
    assert access.always_allow_paths == ("/livez", "/metrics*")
    assert (access.token_ttl_s, access.authorized_ttl_s, access.unauthorized_ttl_s) == (60, 5, 0)


def test_an_invalid_path_is_refused(started: list[RunOptions]) -> None:
    exit_code, errors = run_command("--authorization-always-allow-paths=metrics")
    assert exit_code == 1
    assert "--authorization-always-allow-paths" in errors
    assert started == []


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("[::]", "::"),
        ("[::1]", "::1"),
        ("::", "::"),
        (" 10.0.0.7 ", "10.0.0.7"),
        ("", "0.0.0.0"),
    ],
)
def test_a_bind_address_is_an_address_with_or_without_brackets(
    started: list[RunOptions], text: str, address: str
) -> None:
    assert run_command(f"--bind-address={text}") == (0, "")
    assert _serving(started).bind_address == address


@pytest.mark.parametrize("text", ["localhost", "10.0.0.7:10259", "[10.0.0.7", "::/0"])
def test_another_bind_address_is_refused(started: list[RunOptions], text: str) -> None:
    exit_code, errors = run_command(f"--bind-address={text}")
    assert exit_code == 1
    assert "--bind-address" in errors
    assert "(expected an IPv4 or IPv6 address)" in errors
    assert started == []


def test_flags_about_the_api_server_override_the_file(
    started: list[RunOptions], tmp_path: Path
) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(HEADER + "clientConnection:\n  qps: 50\n  burst: 70\n")
    assert run_command(f"--config={file}") == (0, "")
    assert (started[0].kube_api_qps, started[0].kube_api_burst) == (50, 70)
    flags = ("--kube-api-qps=-1", "--kube-api-burst=5", "--master=https://10.0.0.1:6443")
    assert run_command(f"--config={file}", *flags) == (0, "")
    assert (started[1].kube_api_qps, started[1].kube_api_burst) == (-1, 5)
    assert started[1].master == "https://10.0.0.1:6443"
