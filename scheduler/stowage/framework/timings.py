"""Durations: of extension points and plugins in one of several cycles, of events and hints always.

The core has no clock: the shell passes a timer and is told what it showed. A cycle that is not
sampled pays one comparison for each plugin.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, Protocol, TypeVar

from stowage.api.status import Code, Status

P = ParamSpec("P")
R = TypeVar("R")

_SUCCESS, _ERROR = Code.SUCCESS, Code.ERROR

SAMPLE_ONE_IN = 20
"""A timed cycle costs some 40 µs, so 2 µs a pod. upstream: 10 %, ``pluginMetricsSamplePercent``."""


class DurationObserver(Protocol):
    """Who is told; all durations in seconds, statuses as `Code.title`."""

    def observe_extension_point(
        self, point: str, status: str, profile: str, duration_s: float
    ) -> None:
        """All plugins of an extension point have run for a pod."""
        ...

    def observe_plugin(self, plugin: str, point: str, status: str, duration_s: float) -> None:
        """One plugin has run for a pod, over all nodes it was asked about."""
        ...

    def observe_event(self, event: str, duration_s: float) -> None:
        """An event, named by its label, was taken in: noted, and pods moved that it may help."""
        ...

    def observe_hint(self, plugin: str, event: str, hint: str, duration_s: float) -> None:
        """A plugin was asked whether an event helps: ``Queue``, ``QueueSkip`` or ``Error``."""
        ...

    def observe_permit_wait(self, result: str, duration_s: float) -> None:
        """A pod has waited at Permit."""
        ...


class Timings:
    """Which cycles are sampled, and the way to take a duration.

    Args:
        timer: Seconds.
        observer: Told of every duration.
        one_in: How many cycles there are to a sampled one.
    """

    def __init__(
        self,
        timer: Callable[[], float],
        observer: DurationObserver,
        one_in: int = SAMPLE_ONE_IN,
    ) -> None:
        self.observer = observer
        self.timer = timer
        self._one_in = one_in
        self._cycles = 0

    def is_sampled(self) -> bool:
        """Whether the cycle that begins now is; the first one is, then every n-th."""
        self._cycles += 1
        return self._cycles % self._one_in == 1 or self._one_in == 1

    def of_plugin(self, plugin: str, point: str, run: Callable[P, R]) -> Callable[P, R]:
        """`run`, a plugin's method, with its duration taken; an exception counts as Error."""

        def timed(*args: P.args, **kwargs: P.kwargs) -> R:
            started, status = self.timer(), _ERROR
            try:
                answer = run(*args, **kwargs)
                status = _code_of(answer)
                return answer
            finally:
                duration_s = self.timer() - started
                self.observer.observe_plugin(plugin, point, title_of(status), duration_s)

        return timed


def title_of(code: Code) -> str:
    """`Code.title`, at a tenth of its price where all is well."""
    return "Success" if code is _SUCCESS else code.title


def _code_of(answer: object) -> Code:
    """The status in a plugin's answer; masks and scores of nodes carry none."""
    status = answer if isinstance(answer, Status) else getattr(answer, "status", None)
    return status.code if isinstance(status, Status) else _SUCCESS
