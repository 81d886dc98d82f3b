"""`make audit` without the live database: the locks are compared with a dated snapshot."""

from __future__ import annotations

import importlib.util
import json
import sys
from datetime import date
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from packaging.version import Version

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "requirements" / "audit.py"
LOCKS = sorted((ROOT / "requirements").glob("*.txt"))


@pytest.fixture(scope="module")
def audit() -> ModuleType:
    spec = importlib.util.spec_from_file_location("audit", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def snapshot() -> Any:
    return json.loads((ROOT / "requirements" / "advisories.json").read_text(encoding="utf-8"))


def _main(audit: ModuleType, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["audit.py", *arguments])
    status: int = audit.main()
    return status


def test_no_locked_version_is_in_a_known_vulnerable_range(
    audit: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _main(audit, monkeypatch, "--snapshot-only") == 0
    said = capsys.readouterr().out
    assert "not with a live database" in said
    assert "0 known vulnerabilities in" in said


def test_a_locked_version_with_a_known_vulnerability_is_found(
    audit: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    lock = tmp_path / "run.txt"
    lock.write_text(
        "Markdown_It.Py==2.1.0 \\\n    --hash=sha256:00\n    # via rich\n"
        "urllib3==2.7.0 ; python_full_version >= '3.12'\nrequests==2.31.0\n"
    )
    assert _main(audit, monkeypatch, "--snapshot-only", str(lock)) == 1
    _, first, second, summary = capsys.readouterr().out.splitlines()
    assert first.startswith("markdown-it-py 2.1.0: PYSEC-2023-23, CVE-2023-26302: https://")
    assert second.startswith("markdown-it-py 2.1.0: PYSEC-2023-24, CVE-2023-26303: https://")
    assert summary.startswith("2 known vulnerabilities in 3 locked versions of 3 packages")


@pytest.mark.parametrize(
    ("version", "last", "expected"),
    [
        ("1.25", "fixed", False),
        ("1.26", "fixed", True),
        ("1.26.17rc1", "fixed", True),
        ("1.26.17", "fixed", False),
        ("1.26.17", "last_affected", True),
        ("1.26.17.post1", "last_affected", False),
    ],
)
def test_a_range_ends_before_the_fixed_and_with_the_last_affected_version(
    audit: ModuleType, version: str, last: str, expected: bool
) -> None:
    affected = {"introduced": "1.26", last: "1.26.17"}
    assert audit.is_affected(Version(version), affected) is expected


def test_every_advisory_is_about_a_locked_package_and_says_where_it_is_from(
    audit: ModuleType, snapshot: Any
) -> None:
    locked = {name for lock in LOCKS for name, _ in audit.locked(lock.read_text())}
    sources = {source["name"]: source for source in snapshot["sources"]}
    advisories = snapshot["advisories"]
    assert len({each["id"] for each in advisories}) == len(advisories)
    for each in advisories:
        assert each["package"] in locked, each
        assert each["source"] in sources, each
        assert each["link"].startswith("https://"), each
        for affected in each["ranges"]:
            last = affected.get("fixed") or affected["last_affected"]
            assert Version(affected["introduced"]) < Version(last), each
    for source in sources.values():
        assert source["licence"]
        assert date.fromisoformat(source["newest"]) <= date.fromisoformat(snapshot["collected"])


@pytest.mark.parametrize(
    ("live", "expected", "said"),
    [
        ((0, "", "No known vulnerabilities found"), 0, "No known vulnerabilities found"),
        ((1, "aiohttp 3.9.1 PYSEC-2024-26", "Found 1"), 1, "aiohttp 3.9.1 PYSEC-2024-26"),
        ((1, "", "ERROR: could not be audited"), 0, "not with a live database"),
    ],
)
def test_the_snapshot_is_used_only_where_the_live_database_does_not_answer(
    audit: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    live: tuple[int, str, str],
    expected: int,
    said: str,
) -> None:
    status, out, err = live
    answer = SimpleNamespace(returncode=status, stdout=out, stderr=err)
    monkeypatch.setattr(audit.subprocess, "run", lambda *_args, **_options: answer)
    assert _main(audit, monkeypatch) == expected
    told = capsys.readouterr().out
    assert said in told
    assert ("snapshot" in told) == (said == "not with a live database")
