"""The name of a cluster is the context of its kubeconfig."""

from __future__ import annotations

from pathlib import Path

import pytest

from stowage.operator.client.kube_context import (
    IN_CLUSTER,
    context_name,
    kubernetes_config,
    misshapen_part,
)

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: staging
contexts:
- name: staging
  context: {cluster: c, user: u}
clusters:
- {name: c, cluster: {server: https://127.0.0.1}}
users:
- {name: u, user: {}}
"""


@pytest.fixture(autouse=True)
def no_default(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(kubernetes_config, "KUBE_CONFIG_DEFAULT_LOCATION", str(tmp_path / "none"))


def test_a_kubeconfig_is_named_by_its_current_context(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(KUBECONFIG)
    assert context_name(path) == "staging"


@pytest.mark.parametrize(
    "text", [b"", b"[1]", b"{", b"kind: Config\n", b"current-context: gone\n", b"\xa9"]
)
def test_a_kubeconfig_that_cannot_be_used_is_named_by_its_file(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "kubeconfig"
    path.write_bytes(text)
    assert context_name(path) == "kubeconfig"


def test_without_a_kubeconfig_the_cluster_is_the_one_of_the_pod() -> None:
    assert context_name(None) == IN_CLUSTER


EXPECTED = "(expected a mapping with clusters, contexts, users and current-context)"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (KUBECONFIG.encode(), ""),
        (b"{", ""),
        (b"\xa9", ""),
        (b"", f"it is empty {EXPECTED}"),
        (b"[1]", f"it is of type list {EXPECTED}"),
        (b"users: {}\n", "users is of type dict (expected a list)"),
    ],
    ids=["a kubeconfig", "no YAML", "no text", "empty", "a list", "no list of users"],
)
def test_what_is_no_kubeconfig_is_named_with_what_was_expected(
    tmp_path: Path, text: bytes, problem: str
) -> None:
    path, whole = tmp_path / "kubeconfig", tmp_path / "whole"
    path.write_bytes(text)
    whole.write_text(KUBECONFIG)
    assert misshapen_part(f"{path}:{tmp_path / 'missing'}") == problem
    assert misshapen_part(f"{whole}:{path}") == (f"{path}: {problem}" if problem else "")
