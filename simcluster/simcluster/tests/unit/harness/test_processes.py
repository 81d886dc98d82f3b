"""Child processes end with the command that started them, however it ends."""

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from simcluster.harness.processes import ChildProcess, ChildProcesses, ProcessDiedError
from tests.support.patience import PATIENCE_S

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
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def wait_for_output(child: ChildProcess) -> str:
    deadline = time.monotonic() + PATIENCE_S
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


def test_a_process_says_which_signal_killed_it(tmp_path: Path) -> None:
    child = ChildProcess("sleeper", SLEEP, tmp_path / "log")
    wait_for_output(child)
    assert child.exit_status is None
    child.send_signal(signal.SIGKILL)
    child.stop()
    assert child.exit_status == -signal.SIGKILL


def test_what_a_process_started_ends_with_it(tmp_path: Path) -> None:
    child = ChildProcess("parent", WITH_CHILD, tmp_path / "log")
    grandchild = int(wait_for_output(child))
    assert is_running(grandchild)
    child.stop()
    deadline = time.monotonic() + PATIENCE_S
    while is_running(grandchild):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_process_that_ended_is_reported_with_its_last_words(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "print('no such cluster'); raise SystemExit(3)"]
    child = ChildProcess("scheduler", command, tmp_path / "log")
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    with pytest.raises(ProcessDiedError, match="scheduler ended with status 3:\nno such cluster"):
        child.check()
    child.stop()


def test_processes_end_when_the_block_is_left_by_an_error(tmp_path: Path) -> None:
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


def test_the_way_signals_are_taken_is_given_back(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGTERM)
    with ChildProcesses(tmp_path):
        assert signal.getsignal(signal.SIGTERM) is not before
    assert signal.getsignal(signal.SIGTERM) is before
