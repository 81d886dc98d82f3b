"""Child processes end when the command that started them ends."""

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from simcluster.harness.processes import ChildProcess, ChildProcesses, ProcessDiedError
from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S

SLEEP = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(3600)"]
PARENT = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
print(child.pid, flush=True)
time.sleep(3600)
"""
WITH_CHILD = [sys.executable, "-c", PARENT]


def is_running(pid: int) -> bool:
    try:
        if sys.platform == "linux":
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            is_zombie = fields[0] == "Z"  # without an init, as in a container, nobody reaps it
        else:
            os.kill(pid, 0)
            is_zombie = False
    except (FileNotFoundError, ProcessLookupError):
        return False
    return not is_zombie


def wait_for_output(child: ChildProcess) -> str:
    deadline = time.monotonic() + WAIT_TIMEOUT_S
    while not child.log_tail():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return child.log_tail()


def test_a_process_runs_until_it_is_stopped(tmp_path: Path) -> None:
    child = ChildProcess("sleeper", SLEEP, tmp_path / "log")
    assert wait_for_output(child) == "up"
    child.check()
    child.stop()
    assert not is_running(child.pid)


def test_the_error_names_the_signal_that_killed_a_process(tmp_path: Path) -> None:
    child = ChildProcess("sleeper", SLEEP, tmp_path / "log")
    wait_for_output(child)
    assert child.exit_status is None
    child.send_signal(signal.SIGKILL)
    child.stop()
    assert child.exit_status == -signal.SIGKILL


def test_descendants_of_a_process_end_with_it(tmp_path: Path) -> None:
    child = ChildProcess("parent", WITH_CHILD, tmp_path / "log")
    grandchild = int(wait_for_output(child))
    assert is_running(grandchild)
    child.stop()
    deadline = time.monotonic() + WAIT_TIMEOUT_S
    while is_running(grandchild):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_the_error_for_an_ended_process_has_its_last_output(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "print('no such cluster'); raise SystemExit(3)"]
    child = ChildProcess("scheduler", command, tmp_path / "log")
    deadline = time.monotonic() + WAIT_TIMEOUT_S
    while child.exit_status is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    with pytest.raises(ProcessDiedError, match="scheduler ended with status 3:\nno such cluster"):
        child.check()
    child.stop()


def test_processes_end_when_the_block_raises(tmp_path: Path) -> None:
    started: list[ChildProcess] = []

    def start_and_fail() -> None:
        with ChildProcesses(tmp_path) as processes:
            started.append(
                processes.start_stowage("cluster", "cluster", "--nodes=1", "--listen=127.0.0.1:0")
            )
            processes.check()
            raise RuntimeError("gone wrong")

    with pytest.raises(RuntimeError, match="gone wrong"):
        start_and_fail()
    assert [is_running(child.pid) for child in started] == [False]


def test_signal_handlers_are_restored(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGTERM)
    with ChildProcesses(tmp_path):
        assert signal.getsignal(signal.SIGTERM) is not before
    assert signal.getsignal(signal.SIGTERM) is before
