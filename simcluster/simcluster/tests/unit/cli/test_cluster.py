"""`stowage cluster` refuses invalid flags before it starts."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from simcluster import ClusterOptions
from stowage.cli.main import app


@pytest.fixture(autouse=True)
def _keep_logging(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without this the command leaves the logger with a stream that is closed at its end."""
    monkeypatch.setattr("simcluster.cli.cluster._set_up_logging", lambda: None)


def cluster(*flags: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["cluster", "--listen=127.0.0.1:0", *flags])
    return result.exit_code, " ".join(result.stderr.split())


def test_rbac_without_an_administrator_is_refused() -> None:
    exit_status, errors = cluster("--rbac")
    assert exit_status == 1
    assert "with RBAC the administrator needs one" in errors


def test_a_malformed_token_file_is_refused(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.csv"
    tokens.write_text("only-a-token\n")
    exit_status, errors = cluster(f"--token-auth-file={tokens}")
    assert exit_status == 1
    assert "1 columns, expected token,user,uid[,groups]" in errors.replace(" ,", ",")


@pytest.mark.parametrize(("flags", "expected"), [((), True), (("--no-bookmarks",), False)])
def test_bookmarks_are_a_flag(
    flags: tuple[str, ...], expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[ClusterOptions] = []

    async def run(_nodes: Any, options: ClusterOptions, *_more: Any) -> None:
        seen.append(options)

    monkeypatch.setattr("simcluster.run_cluster", run)
    assert cluster(*flags)[0] == 0
    assert [options.sends_bookmarks for options in seen] == [expected]


def test_an_address_of_ipv6_is_announced_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    started = SimpleNamespace(
        options=SimpleNamespace(from_files=()), num_nodes=5, url="https://[fd88::1]:8001"
    )

    async def run(*arguments: Any) -> None:
        announce = arguments[3]
        announce(started)

    monkeypatch.setattr("simcluster.run_cluster", run)
    assert "5 nodes at https://[fd88::1]:8001, until Ctrl-C" in cluster()[1]


def test_a_gate_without_the_version_that_it_needs_is_refused() -> None:
    exit_status, errors = cluster("--feature-gates=GenericWorkload=true")
    assert exit_status == 1
    assert "--runtime-config" in errors
    assert "scheduling.k8s.io/v1alpha2=true" in errors


@pytest.mark.parametrize("flag", ["--tls-cert-file", "--tls-private-key-file"])
def test_a_certificate_and_its_key_belong_together(flag: str, tmp_path: Path) -> None:
    path = tmp_path / "one.pem"
    path.write_text("")
    code, text = cluster(f"{flag}={path}", "--nodes=0")
    assert code == 1
    assert "a TLS certificate and its private key belong together" in text


@pytest.mark.parametrize(
    "flag", ["--node-file", "--from", "--token-auth-file", "--tls-cert-file", "--write-kubeconfig"]
)
def test_the_error_of_a_binary_file_names_it_whole(flag: str, tmp_path: Path) -> None:
    path = tmp_path / ("binary" * 20)
    path.write_bytes(b"\x1f\x8b\xff\x00")
    tls = [f"--tls-private-key-file={path}"] if flag == "--tls-cert-file" else []
    code, text = cluster(f"{flag}={path}", "--nodes=0", *tls)
    assert code == 1
    assert text.startswith("cannot start the cluster: ")
    assert str(path) in text


def test_the_error_of_a_malformed_file_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "nodes.yaml"
    path.write_text("- count: [1,\n  x: }", encoding="utf-8")
    result = CliRunner().invoke(app, ["cluster", f"--node-file={path}"])
    assert result.exit_code == 1
    assert result.stderr.startswith(f"cannot start the cluster: {path}: ")
    assert result.stderr.count("\n") == 1
