"""Answers for many pages at once: a question is answered once while the cluster is the same."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable

import msgspec

from stowage.console.serving.responses import Encoded

MAX_ANSWERS = 32
MAX_AGE_S = 1.0
"""For so long an answer is given again although the cluster has changed unannounced."""


class _Entry(msgspec.Struct, eq=False):
    version: int
    asked_at: float
    answer: asyncio.Task[Encoded]
    num_waiting: int = 0


class AnswerCache:
    """Keeps the last answers.

    Args:
        monotonic: Returns seconds.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    async def older_made(self, question: Hashable, least: int) -> None:
        """Wait while an answer about an earlier version is made, or fails.

        So each question has one answer at a time that is being made, however many ask.

        Args:
            question: The question.
            least: The version that the asker knows of.
        """
        while True:
            entry = self._entries.get(question)
            if entry is None or entry.version >= least or entry.answer.done():
                return
            await asyncio.wait([entry.answer])

    async def get(
        self,
        question: Hashable,
        version: int,
        least: int,
        answer: Callable[[], Awaitable[Encoded]],
    ) -> Encoded:
        """The answer that is known or being made, or a new one.

        Whoever asks may go away: the answer is made as long as somebody waits for it.

        Args:
            question: The question.
            version: The version of the cluster.
            least: The version that the asker knows of: the answer is of no earlier one.
            answer: Makes an answer.
        """
        entry = self._entries.get(question)
        if entry is None or not self._is_good(entry, version, least):
            task = asyncio.ensure_future(answer())
            entry = self._entries[question] = _Entry(version, self._monotonic(), task)
            task.add_done_callback(lambda _: self._forget_failed(question, task))
        self._entries.move_to_end(question)
        while len(self._entries) > MAX_ANSWERS:
            self._entries.popitem(last=False)
        return await self._awaited(question, entry)

    async def _awaited(self, question: Hashable, entry: _Entry) -> Encoded:
        """The answer; nobody makes it any more when the last one who waits goes away."""
        entry.num_waiting += 1
        try:
            return await asyncio.shield(entry.answer)
        finally:
            entry.num_waiting -= 1
            if not entry.num_waiting and not entry.answer.done():
                if self._entries.get(question) is entry:
                    del self._entries[question]
                entry.answer.cancel()

    def _is_good(self, entry: _Entry, version: int, least: int) -> bool:
        if entry.version == version:
            return True
        if entry.version < least:
            return False
        if not entry.answer.done():
            return True
        return self._monotonic() - entry.asked_at < MAX_AGE_S

    def _forget_failed(self, question: Hashable, task: asyncio.Task[Encoded]) -> None:
        entry = self._entries.get(question)
        failed = task.cancelled() or task.exception() is not None
        if failed and entry is not None and entry.answer is task:
            del self._entries[question]
