"""A question is answered in a child process; the event loop goes on."""

from __future__ import annotations

import asyncio
import os
import time

import pytest

from stowage.console.serving.forked import (
    AnswerFailed,
    AnswerRefused,
    AnswerTookTooLong,
    ChildProcesses,
)


def refuse_values(error: Exception) -> bytes | None:
    return str(error).encode() if isinstance(error, ValueError) else None


@pytest.fixture
def forked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The PIDs of the children that a test starts."""
    pids: list[int] = []
    fork = os.fork

    def fork_noted() -> int:
        pid = fork()
        if pid:
            pids.append(pid)
        return pid

    monkeypatch.setattr(os, "fork", fork_noted)
    return pids


def has_ended(pid: int) -> bool:
    """Whether the process is no child of this one any more, not even an ended one."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return True
    return False


async def test_an_answer_may_be_larger_than_a_pipe(forked: list[int]) -> None:
    answer = await ChildProcesses().answer(lambda: b"x" * 3_000_000, refuse_values)
    assert answer == b"x" * 3_000_000
    assert [has_ended(pid) for pid in forked] == [True]


async def test_what_the_child_changes_stays_there() -> None:
    known = [1]

    def change() -> bytes:
        known.append(2)
        return bytes(known)

    assert await ChildProcesses().answer(change, refuse_values) == bytes([1, 2])
    assert known == [1]


async def test_a_refusal_of_the_child_is_raised() -> None:
    def refuse() -> bytes:
        raise ValueError("no such node")

    with pytest.raises(AnswerRefused, match="no such node"):
        await ChildProcesses().answer(refuse, refuse_values)


async def test_a_failure_of_the_child_is_told_with_its_traceback(
    capfd: pytest.CaptureFixture[str], forked: list[int]
) -> None:
    def fail() -> bytes:
        raise KeyError("a bug")

    with pytest.raises(AnswerFailed):
        await ChildProcesses().answer(fail, refuse_values)
    assert "KeyError: 'a bug'" in capfd.readouterr().err
    assert [has_ended(pid) for pid in forked] == [True]


async def test_a_child_that_dies_is_a_failure() -> None:
    with pytest.raises(AnswerFailed):
        await ChildProcesses().answer(lambda: os._exit(3), refuse_values)


async def test_a_child_that_takes_too_long_is_killed(forked: list[int]) -> None:
    def forever() -> bytes:
        time.sleep(600)
        return b""

    with pytest.raises(AnswerTookTooLong, match=r"more than 0\.01 seconds"):
        await ChildProcesses(limit_s=0.01).answer(forever, refuse_values)
    assert [has_ended(pid) for pid in forked] == [True]


async def test_a_child_whose_asker_has_gone_is_killed(forked: list[int]) -> None:
    reading, writing = os.pipe()

    def forever() -> bytes:
        os.write(writing, b".")
        time.sleep(600)
        return b""

    task = asyncio.create_task(ChildProcesses().answer(forever, refuse_values))
    await asyncio.to_thread(os.read, reading, 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [has_ended(pid) for pid in forked] == [True]
    os.close(reading)
    os.close(writing)


async def test_only_some_children_run_at_a_time(forked: list[int]) -> None:
    children = ChildProcesses(num_at_once=2)
    reading, writing = os.pipe()

    def wait_for_a_byte() -> bytes:
        return os.read(reading, 1)

    tasks = [asyncio.create_task(children.answer(wait_for_a_byte, refuse_values)) for _ in range(3)]
    for _ in range(10):
        await asyncio.sleep(0)
    assert len(forked) == 2
    os.write(writing, b"abc")
    assert sorted(await asyncio.gather(*tasks)) == [b"a", b"b", b"c"]
    assert len(forked) == 3
    os.close(reading)
    os.close(writing)


async def test_the_event_loop_goes_on_while_a_child_answers() -> None:
    reading, writing = os.pipe()
    answer = asyncio.create_task(
        ChildProcesses().answer(lambda: os.read(reading, 1), refuse_values)
    )
    for _ in range(5):
        await asyncio.sleep(0)
    assert not answer.done()
    os.write(writing, b"!")
    assert await answer == b"!"
    os.close(reading)
    os.close(writing)
