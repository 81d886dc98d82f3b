"""An observer of the engine's durations, for tests that ask for none or for few of them."""

from __future__ import annotations

from typing import Any


class Unobserved:
    """Takes every duration and notes none; subclasses note some."""

    def observe_extension_point(self, *_durations: Any) -> None:
        """Take the duration of an extension point."""

    def observe_plugin(self, *_durations: Any) -> None:
        """Take the duration of a plugin."""

    def observe_event(self, *_durations: Any) -> None:
        """Take the duration of an event."""

    def observe_hint(self, *_durations: Any) -> None:
        """Take the duration of a queueing hint."""

    def observe_permit_wait(self, *_durations: Any) -> None:
        """Take the duration of a wait at Permit."""
