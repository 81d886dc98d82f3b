"""A sampling profile of the event loop's thread.

A thread of its own looks at the stack of the event loop's thread a hundred times a second while a
profile is taken; without a profile nothing runs. The answer has one line for each stack, outermost
frame first, and the number of its samples: the "collapsed" format, which speedscope, inferno and
flamegraph.pl read.

The interpreter switches threads between bytecodes. So the time of a long call into compiled code
counts for the line that made the call, and a wait for I/O for the frame that runs the event loop.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections import Counter
from types import CodeType, FrameType

from stowage.operator import clock

INTERVAL_S = 0.01
DEFAULT_S = 30.0
"""As pprof's default of ``seconds``."""
MAX_S = 300.0

_Stack = tuple[CodeType, ...]


class ProfileInProgressError(Exception):
    """Another profile is being taken; one at a time is enough."""


class Profiler:
    """Takes profiles of the thread that makes it."""

    def __init__(self) -> None:
        self._thread_id = threading.get_ident()
        self._end: threading.Event | None = None

    async def profile(self, duration_s: float) -> str:
        """The stacks of so many seconds, or of those until `stop`.

        Raises:
            ProfileInProgressError: one is being taken already.
        """
        if self._end is not None:
            raise ProfileInProgressError
        end = self._end = threading.Event()
        try:
            stacks = await asyncio.to_thread(_sample, self._thread_id, duration_s, end)
        finally:
            # The thread ends with the request, even if its client has gone.
            end.set()
            self._end = None
        return collapsed(stacks)

    def stop(self) -> None:
        """End the profile that is being taken."""
        if self._end is not None:
            self._end.set()


def _sample(thread_id: int, duration_s: float, end: threading.Event) -> Counter[_Stack]:
    stacks: Counter[_Stack] = Counter()
    ends_at = clock.timer() + duration_s
    while clock.timer() < ends_at and not end.wait(INTERVAL_S):
        # The only way to see the stack of another thread.
        frame = sys._current_frames().get(thread_id)  # noqa: SLF001
        stacks[_stack_of(frame)] += 1
    return stacks


def _stack_of(frame: FrameType | None) -> _Stack:
    codes = []
    while frame is not None:
        codes.append(frame.f_code)
        frame = frame.f_back
    return tuple(reversed(codes))


def collapsed(stacks: Counter[_Stack]) -> str:
    """The stacks in the collapsed format, the most frequent one first."""
    return "".join(
        f"{';'.join(map(_frame_name, stack))} {count}\n" for stack, count in stacks.most_common()
    )


def _frame_name(code: CodeType) -> str:
    """``function (package/module.py:line)``; the separator of frames may not be part of it."""
    file = "/".join(code.co_filename.split("/")[-3:])
    return f"{code.co_qualname} ({file}:{code.co_firstlineno})".replace(";", ",")
