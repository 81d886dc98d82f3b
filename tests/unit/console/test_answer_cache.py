"""Many pages ask the same: it is answered once."""

from __future__ import annotations

import asyncio

import pytest

from stowage.console.serving.answer_cache import MAX_AGE_S, MAX_ANSWERS, AnswerCache
from stowage.console.serving.responses import Encoded
from tests.support.consoles import Clock


class Answers:
    """Counts the answers that are made."""

    def __init__(self) -> None:
        self.num_made = 0

    async def make(self) -> Encoded:
        self.num_made += 1
        await asyncio.sleep(0)
        return Encoded(b"%d" % self.num_made, False, "")

    async def fail(self) -> Encoded:
        self.num_made += 1
        raise ValueError("no answer")


async def test_pages_that_ask_at_once_share_an_answer() -> None:
    cache, answers = AnswerCache(Clock()), Answers()
    found = await asyncio.gather(*(cache.get("q", 1, 0, answers.make) for _ in range(9)))
    assert {each.body for each in found} == {b"1"}


async def test_an_answer_is_good_while_the_cluster_is_the_same() -> None:
    clock = Clock()
    cache, answers = AnswerCache(clock), Answers()
    await cache.get("q", 1, 0, answers.make)
    clock.now += 3600
    await cache.get("q", 1, 0, answers.make)
    await cache.get("other", 1, 0, answers.make)
    assert answers.num_made == 2


async def test_an_answer_about_an_earlier_cluster_is_good_for_a_second() -> None:
    clock = Clock()
    cache, answers = AnswerCache(clock), Answers()
    await cache.get("q", 1, 0, answers.make)
    clock.now += MAX_AGE_S / 2
    await cache.get("q", 2, 0, answers.make)
    assert answers.num_made == 1
    clock.now += MAX_AGE_S
    assert (await cache.get("q", 3, 0, answers.make)).body == b"2"


async def test_an_answer_is_never_of_an_earlier_version_than_its_asker_knows_of() -> None:
    cache, answers = AnswerCache(Clock()), Answers()
    await cache.get("q", 1, 0, answers.make)
    assert (await cache.get("q", 2, 2, answers.make)).body == b"2"


async def test_who_needs_a_later_answer_waits_for_the_one_that_is_being_made() -> None:
    cache, answers = AnswerCache(Clock()), Answers()

    async def ask_again() -> Encoded:
        await cache.older_made("q", 2)
        return await cache.get("q", 2, 2, answers.make)

    first = asyncio.create_task(cache.get("q", 1, 0, answers.make))
    await asyncio.sleep(0)
    later = await asyncio.gather(*(ask_again() for _ in range(9)))
    assert ((await first).body, {each.body for each in later}) == (b"1", {b"2"})
    assert answers.num_made == 2


async def test_a_failed_answer_is_not_kept() -> None:
    cache, answers = AnswerCache(Clock()), Answers()
    for _ in range(2):
        with pytest.raises(ValueError, match="no answer"):
            await cache.get("q", 1, 0, answers.fail)
    assert answers.num_made == 2
    assert len(cache) == 0


async def test_one_page_that_leaves_does_not_take_the_answer_from_the_others() -> None:
    cache, answers = AnswerCache(Clock()), Answers()
    leaving = asyncio.create_task(cache.get("q", 1, 0, answers.make))
    staying = asyncio.create_task(cache.get("q", 1, 0, answers.make))
    await asyncio.sleep(0)
    leaving.cancel()
    assert (await staying).body == b"1"


async def test_nobody_makes_an_answer_that_nobody_waits_for() -> None:
    cache = AnswerCache(Clock())
    ended: list[str] = []

    async def take_long() -> Encoded:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("child")
        raise AssertionError

    leaving = [asyncio.create_task(cache.get("q", 1, 0, take_long)) for _ in range(2)]
    await asyncio.sleep(0)
    leaving[0].cancel()
    await asyncio.wait(leaving[:1])
    assert not ended
    leaving[1].cancel()
    await asyncio.wait(leaving)
    assert len(cache) == 0
    assert (await cache.get("q", 1, 0, Answers().make)).body == b"1"
    assert ended == ["child"]


async def test_only_the_last_answers_are_kept() -> None:
    cache, answers = AnswerCache(Clock()), Answers()
    for number in range(MAX_ANSWERS + 5):
        await cache.get(number, 1, 0, answers.make)
    assert len(cache) == MAX_ANSWERS
