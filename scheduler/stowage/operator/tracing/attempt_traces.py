"""Traces of scheduling attempts, made of the engine's durations and instructions."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from opentelemetry.trace import Span, StatusCode, Tracer, set_span_in_context, use_span

from stowage.api.instructions import AttemptResult, PodBound, PodReference
from stowage.framework import DurationObserver

MAX_OPEN_ATTEMPTS = 4096
"""The oldest attempts are given up beyond this: a pod may be deleted while it is bound."""


class PodJob(Protocol):
    """A job for a pod."""

    @property
    def pod(self) -> PodReference:
        """The pod."""
        ...


Job = TypeVar("Job", bound=PodJob)


class AttemptTraces:
    """Begins a trace with the first cycle of an attempt, and ends it with the attempt.

    Args:
        tracer: Makes the spans, and selects the attempts to trace.
        observer: Receives the durations of traced cycles, too.
        unix_nanoseconds: Returns the present time.
    """

    def __init__(
        self, tracer: Tracer, observer: DurationObserver, unix_nanoseconds: Callable[[], int]
    ) -> None:
        self._tracer = tracer
        self._observer = observer
        self._unix_nanoseconds = unix_nanoseconds
        # None for an attempt that is not traced: extenders may give it a second cycle.
        self._open: OrderedDict[str, AttemptTrace | None] = OrderedDict()

    def trace_cycle(self, uid: str) -> DurationObserver | None:
        """The observer of the pod's cycle that begins now; None if the attempt is not traced."""
        if uid in self._open:
            return self._open[uid]
        started = self._unix_nanoseconds()
        root = self._tracer.start_span("Scheduling", start_time=started)
        trace = None
        if root.is_recording():
            trace = AttemptTrace(self._tracer, root, self._observer, self._unix_nanoseconds)
        self._open[uid] = trace
        if len(self._open) > MAX_OPEN_ATTEMPTS:
            self._end(next(iter(self._open)))
        return trace

    def attempt_ended(self, attempt: AttemptResult) -> None:
        """Record the outcome; the trace of a scheduled pod goes on until `pod_bound`."""
        trace = self._open.get(attempt.pod.uid)
        if trace is None:
            self._open.pop(attempt.pod.uid, None)
            return
        trace.record(attempt)
        if attempt.result != "scheduled":
            self._end(attempt.pod.uid)

    def pod_bound(self, bound: PodBound) -> None:
        """End the trace of the pod."""
        self._end(bound.pod.uid)

    def end_all(self) -> None:
        """End the traces of all attempts: the process ends, whatever became of their bindings."""
        for uid in list(self._open):
            self._end(uid)

    def within(self, work: Callable[[Job], Awaitable[None]]) -> Callable[[Job], Awaitable[None]]:
        """`work`, whose requests belong to the trace of the job's pod."""

        async def traced(job: Job) -> None:
            trace = self._open.get(job.pod.uid)
            if trace is None:
                await work(job)
            else:
                with use_span(trace.phase, record_exception=False, set_status_on_exception=False):
                    await work(job)

        return traced

    def _end(self, uid: str) -> None:
        trace = self._open.pop(uid, None)
        if trace is not None:
            trace.end()


class AttemptTrace:
    """The spans of one attempt; observes the durations of its cycles.

    Args:
        tracer: Makes the spans.
        root: The span of the attempt, which has just begun.
        observer: Receives the durations, too.
        unix_nanoseconds: Returns the present time.

    Attributes:
        phase: The span of the scheduling cycle, then that of the binding cycle.
    """

    def __init__(
        self,
        tracer: Tracer,
        root: Span,
        observer: DurationObserver,
        unix_nanoseconds: Callable[[], int],
    ) -> None:
        self._tracer = tracer
        self._root = root
        self._observer = observer
        self._unix_nanoseconds = unix_nanoseconds
        self._is_binding = False
        self._last_point_ended = self._started = unix_nanoseconds()
        self.phase = self._start("SchedulingCycle", root, self._started)

    def record(self, attempt: AttemptResult) -> None:
        """Put the outcome of the attempt, or of its binding, into the span of the attempt."""
        self._root.set_attributes(
            {
                "k8s.namespace.name": attempt.pod.namespace,
                "k8s.pod.name": attempt.pod.name,
                "k8s.pod.uid": attempt.pod.uid,
                "scheduler.profile": attempt.scheduler_name,
                "scheduler.attempt": attempt.attempts,
                "scheduler.result": attempt.result,
            }
        )
        if attempt.message:
            self._root.set_attribute("scheduler.message", attempt.message)
        if attempt.result == "error":
            self._root.set_status(StatusCode.ERROR, attempt.message)
        if not self._is_binding:
            self._record_decision(attempt)

    def end(self) -> None:
        """End the attempt now."""
        now = self._unix_nanoseconds()
        self.phase.end(now)
        self._root.end(now)

    def observe_extension_point(
        self, point: str, status: str, profile: str, duration_s: float
    ) -> None:
        """Make the span of an extension point that has just run."""
        ended = self._last_point_ended = self._unix_nanoseconds()
        span = self._start(point, self.phase, ended - _nanoseconds(duration_s))
        span.set_attribute("scheduler.status", status)
        span.end(ended)
        self._observer.observe_extension_point(point, status, profile, duration_s)

    def observe_plugin(self, plugin: str, point: str, status: str, duration_s: float) -> None:
        """Pass the duration on: a span for each plugin would be too much."""
        self._observer.observe_plugin(plugin, point, status, duration_s)

    def observe_event(self, event: str, duration_s: float) -> None:
        """Pass the duration on."""
        self._observer.observe_event(event, duration_s)

    def observe_hint(self, plugin: str, event: str, hint: str, duration_s: float) -> None:
        """Pass the duration on."""
        self._observer.observe_hint(plugin, event, hint, duration_s)

    def observe_permit_wait(self, result: str, duration_s: float) -> None:
        """Pass the duration on."""
        self._observer.observe_permit_wait(result, duration_s)

    def _record_decision(self, attempt: AttemptResult) -> None:
        self._root.set_attribute("scheduler.evaluated_nodes", attempt.evaluated_nodes)
        self._root.set_attribute("scheduler.feasible_nodes", attempt.feasible_nodes)
        if attempt.result != "scheduled":
            return
        self._root.set_attribute("k8s.node.name", attempt.node_name)
        # The engine reports after a slice of several pods, so `now` would be too late.
        decided = self._started + _nanoseconds(attempt.duration_s)
        ended = max(decided, self._last_point_ended)
        self.phase.end(ended)
        self.phase = self._start("BindingCycle", self._root, ended)
        self._is_binding = True

    def _start(self, name: str, parent: Span, started: int) -> Span:
        return self._tracer.start_span(name, set_span_in_context(parent), start_time=started)


def _nanoseconds(seconds: float) -> int:
    return int(seconds * 1e9)
