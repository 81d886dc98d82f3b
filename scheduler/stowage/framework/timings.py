"""Durations of extension points and plugins, which are observed in sampled cycles.

The core has no clock: the operator passes a timer and an observer. A cycle that is not sampled pays
one comparison per extension point and plugin.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, Protocol, Self, TypeAlias, TypeVar

from stowage.api.interruptible import Interruptible
from stowage.api.status import Code, Status

P = ParamSpec("P")
R = TypeVar("R")

_SUCCESS = Code.SUCCESS

SAMPLE_ONE_IN = 20
"""Timing a cycle costs about 40 µs, so 2 µs per pod. upstream: ``pluginMetricsSamplePercent``."""


class DurationObserver(Protocol):
    """Receives durations in seconds, with statuses as `Code.title`."""

    def observe_extension_point(
        self, point: str, status: str, profile: str, duration_s: float
    ) -> None:
        """All plugins of an extension point have run for a pod."""
        ...

    def observe_plugin(self, plugin: str, point: str, status: str, duration_s: float) -> None:
        """One plugin has run for a pod, over all nodes it was asked about."""
        ...

    def observe_event(self, event: str, duration_s: float) -> None:
        """The engine has handled an event and moved the pods that it may help."""
        ...

    def observe_hint(self, plugin: str, event: str, hint: str, duration_s: float) -> None:
        """A queueing hint has answered ``Queue``, ``QueueSkip`` or ``Error``."""
        ...

    def observe_permit_wait(self, result: str, duration_s: float) -> None:
        """A pod has waited at Permit."""
        ...


TraceCycle: TypeAlias = Callable[[str], DurationObserver | None]
"""Called with the pod's UID when a cycle begins; returns its observer if the cycle is traced."""


class Timings:
    """Selects the cycles to sample, and times the extension points and plugins in them.

    Args:
        timer: Returns seconds.
        observer: Receives every duration, except those of traced cycles.
        one_in: One of this many cycles is sampled.
        trace_cycle: Selects the cycles to trace, which are sampled too; None traces none.
    """

    def __init__(
        self,
        timer: Callable[[], float],
        observer: DurationObserver,
        one_in: int = SAMPLE_ONE_IN,
        trace_cycle: TraceCycle | None = None,
    ) -> None:
        self.observer = observer
        self.timer = timer
        self._one_in = one_in
        self._cycles = 0
        self._trace_cycle = trace_cycle

    def of_cycle(self, uid: str) -> Timings | None:
        """The timings of the pod's cycle that begins now; None if it is not sampled."""
        is_sampled = self.is_sampled()
        traced = None if self._trace_cycle is None else self._trace_cycle(uid)
        if traced is not None:
            return Timings(self.timer, traced)
        return self if is_sampled else None

    def is_sampled(self) -> bool:
        """Whether to sample the cycle that begins now: the first, then every n-th."""
        self._cycles += 1
        return self._cycles % self._one_in == 1 or self._one_in == 1

    def of_plugin(self, plugin: str, point: str, run: Callable[P, R]) -> Callable[P, R]:
        """`run`, a plugin's method, with its duration observed."""
        return self._timed(self._plugin_observer(plugin, point), run, code_of)

    def of_point(
        self, point: str, profile: str, run: Callable[P, R], read_code: Callable[[Any], Code]
    ) -> Callable[P, R]:
        """`run`, which runs an extension point of a profile, with its duration observed.

        Args:
            point: The extension point, as the metric names it.
            profile: The profile's scheduler name.
            run: Runs the plugins.
            read_code: Reads the status code from the answer of `run`.
        """
        return self._timed(self._point_observer(point, profile), run, read_code)

    def stopwatch(self, point: str, profile: str) -> Stopwatch:
        """Takes the duration of an extension point that takes more than one call."""
        return Stopwatch(self.timer, self._point_observer(point, profile))

    def plugin_stopwatch(self, plugin: str, point: str) -> Stopwatch:
        """Takes the duration of a plugin that takes more than one call."""
        return Stopwatch(self.timer, self._plugin_observer(plugin, point))

    def _plugin_observer(self, plugin: str, point: str) -> Callable[[str, float], None]:
        def observe(status: str, duration_s: float) -> None:
            self.observer.observe_plugin(plugin, point, status, duration_s)

        return observe

    def _point_observer(self, point: str, profile: str) -> Callable[[str, float], None]:
        def observe(status: str, duration_s: float) -> None:
            self.observer.observe_extension_point(point, status, profile, duration_s)

        return observe

    def _timed(
        self,
        observe: Callable[[str, float], None],
        run: Callable[P, R],
        read_code: Callable[[Any], Code],
    ) -> Callable[P, R]:
        def timed(*args: P.args, **kwargs: P.kwargs) -> R:
            with Stopwatch(self.timer, observe) as stopwatch:
                answer = run(*args, **kwargs)
                stopwatch.code = read_code(answer)
                return answer

        return timed


def timed_plugin(
    timings: Timings | None, plugin: str, point: str, run: Callable[P, R]
) -> Callable[P, R]:
    """`run`, a plugin's method; its duration is observed unless `timings` is None."""
    return run if timings is None else timings.of_plugin(plugin, point, run)


def timed_steps(stopwatch: Stopwatch | None, steps: Interruptible[R]) -> Interruptible[R]:
    """Take all `steps`; their duration, with what is done between them, is observed if it can."""
    if stopwatch is None:
        return (yield from steps)
    with stopwatch:
        answer = yield from steps
        stopwatch.code = code_of(answer)
        return answer


class Stopwatch:
    """Takes the duration of its ``with`` block and passes it on with a status.

    Without a block, it is started and stopped.

    Args:
        timer: Seconds.
        observe: Takes the status, as `Code.title`, and the duration.

    Attributes:
        code: The status; an Error unless the block sets it.
    """

    __slots__ = ("_observe", "_started", "_timer", "code")

    def __init__(self, timer: Callable[[], float], observe: Callable[[str, float], None]) -> None:
        self._timer = timer
        self._observe = observe
        self.code = Code.ERROR

    def start(self) -> Self:
        """Begin to take the duration."""
        self._started = self._timer()
        return self

    def stop(self, code: Code) -> None:
        """Pass the duration on."""
        duration_s = self._timer() - self._started
        self._observe("Success" if code is _SUCCESS else code.title, duration_s)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_raised: object) -> None:
        self.stop(self.code)


def code_of(answer: object) -> Code:
    """The status in an answer of a plugin or an extension point; Success if it carries none.

    A plugin that answers with more than a status, as at PostFilter and Permit, names it first.
    """
    if isinstance(answer, tuple):
        answer = answer[0]
    status = answer if isinstance(answer, Status) else getattr(answer, "status", None)
    return status.code if isinstance(status, Status) else _SUCCESS
