"""Runs a command that asks a cluster, and a small cluster in a file to be asked about."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path


def run_stowage(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run ``stowage`` with these arguments in a process of its own."""
    command = [sys.executable, "-m", "stowage.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, input=stdin, check=False)


def objects(tmp_path: Path) -> str:
    """A file of three nodes in two pools."""
    nodes = [
        {
            "kind": "Node",
            "metadata": {"name": name, "uid": name, "labels": {"pool": pool}},
            "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "110"}},
        }
        for name, pool, cpu in (("n1", "small", "2"), ("n2", "large", "8"), ("n3", "large", "9"))
    ]
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps(nodes))
    return str(file)


POD = {
    "kind": "Pod",
    "metadata": {"name": "p"},
    "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]},
}
