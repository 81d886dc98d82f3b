"""Answers a question in a child process, which shares the cluster as it is at this moment.

A question may take seconds, and may change its copy of the cluster. The event loop goes on in the
meantime and applies what the watches show. A child that takes too long, or whose answer nobody
waits for any more, is killed.

A thread that reads a cluster or a recording holds the lock of `ChildProcesses`, so nothing is half
done in a child. A thread that asks a scheduler for decisions may run meanwhile: the child does not
use the network, so it needs none of the locks that the thread may hold.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

_DONE, _REFUSED, _FAILED = b"0", b"1", b"2"
_CHUNK = 2**20


class AnswerRefused(Exception):  # noqa: N818 - it names the finding
    """The child refuses the question; `body` says why."""

    def __init__(self, body: bytes) -> None:
        super().__init__(body.decode(errors="replace"))
        self.body = body


class AnswerTookTooLong(Exception):  # noqa: N818 - it names the finding
    """The child was killed after the time limit."""


class AnswerFailed(RuntimeError):  # noqa: N818 - it names the finding
    """The child failed; its traceback was written to standard error."""


class ChildProcesses:
    """Answers questions in child processes, a few at a time.

    Args:
        limit_s: Seconds after which a child is killed.
        num_at_once: Number of children at a time; others wait.

    Attributes:
        fork_lock: Held while a process is forked; hold it while another thread works.
    """

    def __init__(self, limit_s: float = 60.0, num_at_once: int = 2) -> None:
        self.limit_s = limit_s
        self.fork_lock = asyncio.Lock()
        self._places = asyncio.Semaphore(num_at_once)

    async def answer(
        self, compute: Callable[[], bytes], refusal: Callable[[Exception], bytes | None]
    ) -> bytes:
        """The bytes that `compute` returns in a child.

        Args:
            compute: Called in the child.
            refusal: Returns the body of a refusal for an exception of `compute`, called in the
                child; None if the exception is a failure.

        Raises:
            AnswerRefused: `refusal` returned a body.
            AnswerTookTooLong: The time is over.
            AnswerFailed: `compute` failed.
        """
        async with self._places:
            async with self.fork_lock:
                pid, pipe = _fork(compute, refusal)
            try:
                async with asyncio.timeout(self.limit_s):
                    told = await _read(pipe)
            except TimeoutError as late:
                raise AnswerTookTooLong(
                    f"the answer took more than {self.limit_s:g} seconds"
                ) from late
            finally:
                os.close(pipe)
                _end(pid)
        outcome, body = told[:1], told[1:]
        if outcome == _DONE:
            return body
        if outcome == _REFUSED:
            raise AnswerRefused(body)
        raise AnswerFailed("the answer failed; standard error has the traceback")


def _fork(
    compute: Callable[[], bytes], refusal: Callable[[Exception], bytes | None]
) -> tuple[int, int]:
    """Start the child; its PID, and the pipe that it writes to."""
    reading, writing = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    with warnings.catch_warnings():
        # Python 3.12 warns of threads, whatever they do; see the module.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        os.close(reading)
        _be_child(writing, compute, refusal)
    os.close(writing)
    os.set_blocking(reading, False)
    return pid, reading


def _end(pid: int) -> None:
    """Kill the child if it still runs; it has closed the pipe, or is killed, so this is quick."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def _be_child(
    pipe: int, compute: Callable[[], bytes], refusal: Callable[[Exception], bytes | None]
) -> NoReturn:
    """Answer and end, without a return into the event loop of the parent."""
    status = 1
    try:
        # The signals of a terminal would else wake the parent's event loop.
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        gc.disable()  # a collection would copy the memory that is shared with the parent
        _write(pipe, _outcome(compute, refusal))
        status = 0
    except BaseException:
        # Nothing may leave this function: it would run on in a copy of the parent's event loop.
        traceback.print_exc()
    finally:
        with suppress(OSError):
            sys.stderr.flush()
        os._exit(status)


def _outcome(compute: Callable[[], bytes], refusal: Callable[[Exception], bytes | None]) -> bytes:
    try:
        return _DONE + compute()
    except Exception as error:  # `refusal` knows which ones are the asker's fault
        body = refusal(error)
        if body is None:
            traceback.print_exc()
            return _FAILED
        return _REFUSED + body


def _write(pipe: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(pipe, view) :]


async def _read(pipe: int) -> bytes:
    """Everything that the child writes until it closes the pipe."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()
    chunks: list[bytes] = []

    def read() -> None:
        with suppress(BlockingIOError):
            chunk = os.read(pipe, _CHUNK)
            chunks.append(chunk)
            if not chunk and not ended.done():
                ended.set_result(None)

    loop.add_reader(pipe, read)
    try:
        await ended
    finally:
        loop.remove_reader(pipe)
    return b"".join(chunks)
