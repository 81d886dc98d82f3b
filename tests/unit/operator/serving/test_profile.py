"""A profile is the stacks of one thread; one is taken at a time."""

from __future__ import annotations

import asyncio

import pytest

from stowage.operator.serving.profile import MAX_S, ProfileInProgressError, Profiler


async def test_one_profile_is_taken_at_a_time_and_can_be_stopped() -> None:
    profiler = Profiler()
    taken = asyncio.create_task(profiler.profile(MAX_S))
    await asyncio.sleep(0)
    with pytest.raises(ProfileInProgressError):
        await profiler.profile(1.0)
    profiler.stop()
    async with asyncio.timeout(10):
        await taken


async def test_a_profile_whose_client_has_gone_makes_room_for_another() -> None:
    profiler = Profiler()
    taken = asyncio.create_task(profiler.profile(MAX_S))
    await asyncio.sleep(0)
    taken.cancel()
    with pytest.raises(asyncio.CancelledError):
        await taken
    assert "asyncio" in await profiler.profile(0.05)


async def test_a_stack_has_its_outermost_frame_first_and_its_number_of_samples() -> None:
    lines = (await Profiler().profile(0.05)).splitlines()
    stack, count = lines[0].rsplit(" ", 1)
    frames = stack.split(";")
    assert int(count) > 0
    assert len(frames) > 5
    assert all(frame.endswith(")") and " (" in frame for frame in frames)
    assert "BaseEventLoop.run_forever" in stack
