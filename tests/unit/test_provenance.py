"""`make dist` and `make image` write what their artefacts were made of."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def statement(folder: Path, target: str, *arguments: str, root: Path = ROOT) -> Any:
    written = folder / "statement.json"
    script = root / "requirements" / "provenance.py"
    subprocess.run([sys.executable, str(script), target, str(written), *arguments], check=True)
    return json.loads(written.read_text())


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="a source distribution has no commit")
def test_the_statement_names_each_file_the_commit_and_the_locks(tmp_path: Path) -> None:
    wheel = tmp_path / "stowage.whl"
    wheel.write_bytes(b"wheel")
    made = statement(tmp_path, "dist", str(wheel), str(tmp_path / "statement.json"))
    assert made["_type"] == "https://in-toto.io/Statement/v1"
    digest = hashlib.sha256(b"wheel").hexdigest()
    assert made["subject"] == [{"name": "stowage.whl", "digest": {"sha256": digest}}]
    definition = made["predicate"]["buildDefinition"]
    commit, *locks = definition["resolvedDependencies"]
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert commit["digest"] == {"gitCommit": head.stdout.strip()}
    assert {each["name"]: each["digest"]["sha256"] for each in locks} == {
        f"requirements/{path.name}": hashlib.sha256(path.read_bytes()).hexdigest()
        for path in (ROOT / "requirements").glob("*.txt")
    }
    assert definition["externalParameters"] == {"target": "dist"}
    assert definition["internalParameters"]["hasUncommittedChanges"] in (True, False)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_the_statement_of_a_source_distribution_names_its_version(tmp_path: Path) -> None:
    """It is unpacked in a repository of its user, whose commit says nothing about it."""
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    root = tmp_path / "stowage"
    (root / "scheduler/stowage").mkdir(parents=True)
    shutil.copytree(ROOT / "requirements", root / "requirements")
    shutil.copy(ROOT / "scheduler/stowage/VERSION", root / "scheduler/stowage")
    made = statement(tmp_path, "image", root=root)
    definition = made["predicate"]["buildDefinition"]
    version = (ROOT / "scheduler/stowage/VERSION").read_text().strip()
    assert definition["resolvedDependencies"][0] == {"uri": f"urn:stowage:sdist:{version}"}
    assert "internalParameters" not in definition


def test_an_image_is_named_with_the_digest_that_docker_gave_it(tmp_path: Path) -> None:
    (tmp_path / "id").write_text("sha256:abc\n")
    made = statement(
        tmp_path,
        "image",
        "--image",
        "stowage:1",
        "--image-id",
        str(tmp_path / "id"),
        "--parameter",
        "PYTHON_IMAGE=python:3.13-slim",
        "--builder",
        "https://ci.example.com",
    )
    assert made["subject"] == [{"name": "stowage:1", "digest": {"sha256": "abc"}}]
    assert made["predicate"]["runDetails"]["builder"] == {"id": "https://ci.example.com"}
    definition = made["predicate"]["buildDefinition"]
    parameters = {"target": "image", "PYTHON_IMAGE": "python:3.13-slim"}
    assert definition["externalParameters"] == parameters
