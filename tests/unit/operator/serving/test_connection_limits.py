"""The number of connections to the endpoints is limited, and idle ones are closed."""

from __future__ import annotations

import asyncio

from stowage.operator.serving.connection_limits import ConnectionLimits

NOT_REACHED_S = 600.0


class _Connection(asyncio.WriteTransport):
    """Notes that it was aborted."""

    def __init__(self) -> None:
        super().__init__()
        self.is_aborted = False

    def abort(self) -> None:
        self.is_aborted = True


def _opened(limits: ConnectionLimits, number: int) -> list[_Connection]:
    connections = [_Connection() for _ in range(number)]
    for each in connections:
        limits.opened(each)
    return connections


def _aborted(*connections: _Connection) -> list[bool]:
    return [each.is_aborted for each in connections]


async def test_a_connection_beyond_the_limit_closes_the_one_that_is_idle_longest() -> None:
    limits = ConnectionLimits(max_connections=2, max_idle_s=NOT_REACHED_S)
    first, second = _opened(limits, 2)
    limits.begun(first)
    (third,) = _opened(limits, 1)
    assert _aborted(first, second, third) == [False, True, False]
    limits.closed(second)
    limits.ended(first)
    (fourth,) = _opened(limits, 1)
    assert _aborted(first, third, fourth) == [False, True, False]


async def test_a_connection_beyond_the_limit_is_closed_if_all_others_have_requests() -> None:
    limits = ConnectionLimits(max_connections=1, max_idle_s=NOT_REACHED_S)
    (busy,) = _opened(limits, 1)
    limits.begun(busy)
    (refused,) = _opened(limits, 1)
    assert _aborted(busy, refused) == [False, True]
    limits.closed(refused)
    limits.closed(busy)
    assert _aborted(*_opened(limits, 1)) == [False]


async def test_a_connection_without_a_request_is_closed_after_the_idle_time() -> None:
    limits = ConnectionLimits(max_idle_s=0.0)
    idle, busy, gone = _opened(limits, 3)
    limits.begun(busy)
    limits.closed(gone)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert _aborted(idle, busy, gone) == [True, False, False]
    limits.ended(busy)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert busy.is_aborted
