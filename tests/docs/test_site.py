"""The site builds without warnings and without a network."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import DOCS


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("sphinx", reason="make docs installs Sphinx")
    strict = ["--fail-on-warning", "--keep-going", "--quiet", "--doctree-dir", str(tmp_path / "d")]
    site = tmp_path / "site"
    built = subprocess.run(
        [sys.executable, "-m", "sphinx", *strict, "--builder", "html", str(DOCS), str(site)],
        check=False,
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr
    assert "PreFilterPlugin" in (site / "reference/plugin-api.html").read_text(encoding="utf-8")
