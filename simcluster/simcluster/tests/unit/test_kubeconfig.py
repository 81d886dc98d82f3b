"""A kubeconfig is written beside the entries of other clusters, and no file is overwritten."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
import yaml
from typer.testing import CliRunner

from simcluster.auth.kubeconfig import write_kubeconfig
from stowage.cli.main import app

MINE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Config",
    "preferences": {"colors": True},
    "clusters": [{"name": "mine", "cluster": {"server": "https://mine:6443"}}],
    "users": [{"name": "me", "user": {"token": "secret"}}],
    "contexts": [{"name": "mine", "context": {"cluster": "mine", "user": "me"}}],
    "current-context": "mine",
}


@pytest.fixture(autouse=True)
def _default_logging() -> Iterator[None]:
    yield
    structlog.reset_defaults()


def _read(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(file.read_text())
    return found


def _names(found: dict[str, Any], part: str) -> list[str]:
    return [each["name"] for each in found[part]]


def test_a_new_file_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    file = write_kubeconfig(tmp_path / "new" / "kubeconfig", "http://127.0.0.1:1", "token")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert _read(file)["clusters"][0]["cluster"] == {"server": "http://127.0.0.1:1"}
    assert [each.name for each in file.parent.iterdir()] == ["kubeconfig"]


def test_the_entries_of_other_clusters_stay(tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump(MINE))
    file.chmod(0o644)
    write_kubeconfig(file, "http://127.0.0.1:1", "token")
    found = _read(file)
    assert found["preferences"] == MINE["preferences"]
    for part in ("clusters", "users", "contexts"):
        assert found[part][0] == MINE[part][0]
        assert _names(found, part)[1:] == ["stowage"]
    assert found["current-context"] == "stowage"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_an_older_entry_of_the_simulated_cluster_is_replaced(tmp_path: Path) -> None:
    file = write_kubeconfig(tmp_path / "kubeconfig", "http://127.0.0.1:1", "old")
    write_kubeconfig(file, "http://127.0.0.1:2", "new")
    found = _read(file)
    assert found["clusters"] == [{"name": "stowage", "cluster": {"server": "http://127.0.0.1:2"}}]
    assert found["users"] == [{"name": "stowage", "user": {"token": "new"}}]
    assert _names(found, "contexts") == ["stowage"]


def test_a_linked_file_is_changed_and_stays_linked(tmp_path: Path) -> None:
    file, link = tmp_path / "kubeconfig", tmp_path / "link"
    file.write_text(yaml.safe_dump(MINE))
    link.symlink_to(file)
    write_kubeconfig(link, "http://127.0.0.1:1")
    assert link.is_symlink()
    assert _names(_read(file), "clusters") == ["mine", "stowage"]


@pytest.mark.parametrize("text", ["- a list\n", "{a: [", "clusters: 5\n", "users: [a]\n", "\udcff"])
def test_a_file_that_is_no_kubeconfig_is_refused_and_kept(text: str, tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    before = text.encode("utf-8", "surrogateescape")
    file.write_bytes(before)
    refused = CliRunner().invoke(app, ["cluster", "--write-kubeconfig", str(file)])
    assert refused.exit_code == 1
    assert "exists and is no kubeconfig" in " ".join(refused.stderr.split())
    assert file.read_bytes() == before


@pytest.mark.parametrize("command", ["dump {}", "cluster --save {}"])
def test_an_existing_file_is_refused_without_force(command: str, tmp_path: Path) -> None:
    file = tmp_path / "objects.json"
    file.write_text("precious")
    refused = CliRunner().invoke(app, command.format(file).split())
    assert refused.exit_code == 1
    assert "exists" in refused.stderr
    assert "--force" in refused.stderr
    assert file.read_text() == "precious"


@pytest.mark.parametrize("flags", [["--force"], ["--from", "objects.json"]])
def test_a_saved_cluster_may_be_overwritten_where_that_is_asked(
    flags: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("objects.json").write_text("[")
    # It is refused for its contents or its address, not because it exists.
    refused = CliRunner().invoke(
        app, ["cluster", "--save", "objects.json", "--listen", "nowhere", *flags]
    )
    assert refused.exit_code == 1
    assert "exists" not in refused.stderr


def test_what_is_no_file_is_refused_and_kept(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(ValueError, match="is no file"):
        write_kubeconfig(folder, "http://127.0.0.1:1")
    assert folder.is_dir()
