"""Runs ``stowage bench`` in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

STOWAGE = [sys.executable, "-m", "stowage.cli"]


def bench(name: str, *arguments: str, timeout_s: float) -> Any:
    """The JSON that a benchmark prints; the benchmark exits 0."""
    answer = subprocess.run(
        [*STOWAGE, "bench", name, "--json", *arguments],
        capture_output=True,
        check=False,
        text=True,
        timeout=timeout_s,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return json.loads(answer.stdout)
