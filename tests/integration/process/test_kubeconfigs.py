"""Every command refuses an unusable kubeconfig with one sentence, not with a traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from simcluster.ports import reserved_port

CLUSTER = "clusters: [{name: c, cluster: {server: SERVER}}]\n"
CONTEXT = "contexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n"
USERS = "users: [{name: u, user: {}}]\n"
HEADER = "apiVersion: v1\nkind: Config\n"
KUBECONFIGS = {
    "empty": "",
    "no YAML": "{a: [",
    "a list": "- a\n",
    "no UTF-8": "\udcff",
    "no current context": HEADER + CLUSTER + USERS + "contexts: []\n",
    "no cluster": HEADER + CONTEXT + USERS,
    "a cluster that is a number": HEADER + CONTEXT + USERS + "clusters: 5\n",
    "a cluster without a server": HEADER + CONTEXT + USERS + "clusters: [{name: c, cluster: {}}]\n",
    "a server that is no URL": HEADER + CONTEXT + USERS + CLUSTER.replace("SERVER", "nowhere"),
    "a damaged CA": HEADER
    + CONTEXT
    + USERS
    + "clusters: [{name: c, cluster: {server: 'https://h', certificate-authority-data: '*'}}]\n",
}
COMMANDS = {
    "run": ("run", "--secure-port=0"),
    "run with a ConfigMap": ("run", "--secure-port=0", "--configmap=a/b"),
    "dump": ("dump", "objects.json"),
    "explain": ("explain", "pod", "p"),
}


def _stderr(arguments: tuple[str, ...], folder: Path, **environment: str) -> str:
    """What a command writes to stderr when it fails."""
    ended = subprocess.run(
        [sys.executable, "-m", "stowage.cli", *arguments],
        capture_output=True,
        check=False,
        cwd=folder,
        env={
            **{each: value for each, value in os.environ.items() if "KUBE" not in each},
            "PYTHONPATH": os.pathsep.join(sys.path),
            "HOME": str(folder),
            **environment,
        },
        text=True,
        timeout=180,
    )
    assert ended.returncode == 1, ended.stderr
    assert "Traceback" not in ended.stderr
    return ended.stderr


def _written(folder: Path, text: str) -> Path:
    file = folder / "kubeconfig"
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    return file


@pytest.mark.parametrize("name", KUBECONFIGS)
def test_run_names_an_unusable_kubeconfig_in_a_log_line(name: str, tmp_path: Path) -> None:
    file = _written(tmp_path, KUBECONFIGS[name])
    (line,) = map(json.loads, _stderr(("run", f"--kubeconfig={file}"), tmp_path).splitlines())
    assert (line["event"], line["level"]) == ("cannot run", "error")
    assert line["errors"][0].startswith(f"the kubeconfig {file} cannot be used: ")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_names_a_malformed_kubeconfig(command: str, tmp_path: Path) -> None:
    file = _written(tmp_path, KUBECONFIGS["a list"])
    stderr = _stderr((*COMMANDS[command], f"--kubeconfig={file}"), tmp_path)
    assert f"the kubeconfig {file} cannot be used" in stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_says_that_there_is_no_kubeconfig(command: str, tmp_path: Path) -> None:
    assert "there is no kubeconfig" in _stderr(COMMANDS[command], tmp_path)


@pytest.mark.parametrize("command", ["run with a ConfigMap", "dump", "explain"])
def test_a_command_that_needs_an_answer_says_that_the_server_is_not_there(
    command: str, tmp_path: Path
) -> None:
    with reserved_port() as port:
        text = HEADER + CONTEXT + USERS + CLUSTER.replace("SERVER", f"http://127.0.0.1:{port}")
        stderr = _stderr((*COMMANDS[command], f"--kubeconfig={_written(tmp_path, text)}"), tmp_path)
    assert f"127.0.0.1:{port}" in stderr
    assert "ConnectionKey" not in stderr


def test_a_refused_flag_is_a_log_line() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "stowage.cli", "run", "--secure-port=many"],
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        text=True,
        timeout=180,
    )
    assert ended.returncode == 2
    (line,) = map(json.loads, ended.stderr.splitlines())
    assert line["event"] == "cannot run"
    assert "--secure-port" in line["errors"][0]
