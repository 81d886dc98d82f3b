"""Faults that repeat, delay or reorder watch events; no event is lost."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from simcluster.faults.disturbance import DisturbedSink
from simcluster.faults.faults import FaultRule, Faults

A, B, C, D = (b'{"type":"ADDED","object":%d}\n' % number for number in range(4))
BOOKMARK = b'{"type":"BOOKMARK","object":9}\n'


class Sink:
    """Records written bytes."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.written = asyncio.Event()

    async def write(self, data: bytes) -> None:
        self.lines += data.splitlines(keepends=True)
        self.written.set()


def _disturbed(rule: FaultRule) -> tuple[DisturbedSink, Sink, Faults]:
    faults, sink = Faults(chance=lambda: 0.0), Sink()
    faults.add(rule)
    return DisturbedSink(cast("Any", None), faults, rule, sink), sink, faults


async def test_each_event_is_overtaken_by_the_next_in_one_write() -> None:
    disturbed, sink, _ = _disturbed(FaultRule(reorder_rate=1.0))
    await disturbed.write(A)
    assert sink.lines == []
    await disturbed.write(B + C + D)
    assert sink.lines == [B, A, D, C]


async def test_a_delayed_event_is_sent_when_the_rule_is_removed() -> None:
    disturbed, sink, faults = _disturbed(FaultRule(reorder_rate=1.0))
    await disturbed.write(A)
    faults.clear()
    await disturbed.write(B)
    assert sink.lines == [A, B]


async def test_a_delayed_event_without_a_successor_is_sent_after_a_while() -> None:
    disturbed, sink, _ = _disturbed(FaultRule(reorder_rate=1.0))
    await disturbed.write(A)
    await sink.written.wait()
    assert sink.lines == [A]


async def test_a_bookmark_never_overtakes_an_event() -> None:
    disturbed, sink, _ = _disturbed(FaultRule(reorder_rate=1.0))
    await disturbed.write(BOOKMARK + A + BOOKMARK)
    assert sink.lines == [BOOKMARK, A, BOOKMARK]


async def test_an_earlier_event_is_sent_again() -> None:
    disturbed, sink, _ = _disturbed(FaultRule(repeat_rate=1.0))
    await disturbed.write(A + B)
    assert sink.lines == [A, A, B, A]
