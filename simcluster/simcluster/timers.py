"""Timers of the event loop, or of the clock of a test."""

import asyncio
from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    """A pending call."""

    def cancel(self) -> None:
        """Cancel the call."""
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
