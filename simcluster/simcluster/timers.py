"""What happens later: on the event loop, or whenever a test lets time pass."""

import asyncio
from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    """Something that will happen unless it is cancelled."""

    def cancel(self) -> None:
        """Keep it from happening."""
        ...


class Timers(Protocol):
    """Calls functions later."""

    def after(self, seconds: float, act: Callable[[], None]) -> Timer:
        """Call ``act`` once, ``seconds`` from now."""
        ...


class LoopTimers:
    """Timers of the running event loop."""

    def after(self, seconds: float, act: Callable[[], None]) -> Timer:
        """Call ``act`` once, ``seconds`` from now."""
        return asyncio.get_running_loop().call_later(max(0.0, seconds), act)
