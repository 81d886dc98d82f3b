"""Each threat of the threat model names tests, and these exist."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.docs.pages import DOCS, ROOT

HEADING = ("Threat", "What Stowage does", "What it does not", "Test")
PLACES = (ROOT / "tests", ROOT / "simcluster", ROOT / "benchmarks")
_TEST = re.compile(r"^ *(?:async )?def (test_\w+)\(", re.MULTILINE)
TEXT = (DOCS / "explanation" / "threat-model.md").read_text(encoding="utf-8")


def _rows() -> Iterator[tuple[str, ...]]:
    for line in TEXT.splitlines():
        cells = tuple(cell.strip() for cell in line.strip("|").split("|"))
        if line.startswith("| ") and cells != HEADING:
            yield cells


@pytest.fixture(scope="module")
def tests() -> frozenset[str]:
    """The names of all tests of the repository."""
    files = [file for place in PLACES for file in place.rglob("test_*.py")]
    return frozenset(
        name for file in files for name in _TEST.findall(file.read_text(encoding="utf-8"))
    )


@pytest.mark.parametrize("row", list(_rows()), ids=lambda row: row[0][:60])
def test_each_threat_has_tests_that_exist(row: tuple[str, ...], tests: frozenset[str]) -> None:
    assert len(row) == len(HEADING)
    threat, does, does_not, named = row
    assert threat.endswith(".")
    assert does or does_not
    found = re.findall(r"`(test_\w+)`", named)
    assert found
    assert sorted(set(found) - tests) == []


def test_every_section_has_threats() -> None:
    sections = TEXT.split("\n## ")[1:]
    assert len(sections) > 5
    assert all("| Threat |" in section and "`test_" in section for section in sections)
