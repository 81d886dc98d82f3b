"""Durations of PreBind and of the plugins after it, which take several calls of the engine."""

from __future__ import annotations

from stowage.api.status import Code
from stowage.framework import Timings
from stowage.framework.timings import Stopwatch

PRE_BIND, BIND = "PreBind", "Bind"


class BindingDurations:
    """Times PreBind, and the plugins that write to the API server, in one sampled cycle.

    The shell times Bind itself in every cycle, with the request.

    Args:
        timings: Those of the cycle.
        profile: The profile's scheduler name.
    """

    def __init__(self, timings: Timings, profile: str) -> None:
        self._timings = timings
        self._pre_bind: Stopwatch | None = timings.stopwatch(PRE_BIND, profile).start()
        self._plugin: Stopwatch | None = None

    def begin_plugin(self, plugin: str, point: str) -> None:
        """A plugin has begun; it ends with `end_plugin`, or with the cycle."""
        self._plugin = self._timings.plugin_stopwatch(plugin, point).start()

    def end_plugin(self, code: Code) -> None:
        """The plugin has ended, if one is running."""
        if self._plugin is not None:
            self._plugin.stop(code)
            self._plugin = None

    def end_pre_bind(self, code: Code) -> None:
        """PreBind has ended, unless it has before."""
        if self._pre_bind is not None:
            self._pre_bind.stop(code)
            self._pre_bind = None
