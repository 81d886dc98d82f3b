"""Traces of attempts, made of what a real engine measures and says."""

from __future__ import annotations

from itertools import count

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, Sampler
from opentelemetry.trace import StatusCode, get_current_span

from stowage.api.events import BindFailed, BindSucceeded, NodeSeen, PendingPodSeen
from stowage.api.instructions import AttemptResult, BindPod, Instruction, PodBound
from stowage.framework import Timings
from stowage.operator.metrics.scheduler_metrics import Metrics
from stowage.operator.tracing import attempt_traces
from stowage.operator.tracing.attempt_traces import AttemptTraces
from tests.support.builders import make_node, make_pod
from tests.support.engines import default_engine, of_type

CYCLE_POINTS = {"PreFilter", "Filter", "PreScore", "Score", "Reserve", "Permit"}


class _Traced:
    """A real engine whose attempts are traced, and the spans that have ended."""

    def __init__(self, sampler: Sampler = ALWAYS_ON) -> None:
        self._exporter = InMemorySpanExporter()
        provider = TracerProvider(sampler=sampler, shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        milliseconds = count()
        self.metrics = Metrics(lambda: 0.0)
        self.traces = AttemptTraces(
            provider.get_tracer("test"),
            self.metrics,
            lambda: 10**18 + next(milliseconds) * 10**6,
        )
        self.engine = default_engine()
        self.engine.take_durations(
            Timings(
                lambda: next(milliseconds) / 1000,
                self.metrics,
                one_in=1_000_000,
                trace_cycle=self.traces.trace_cycle,
            )
        )

    def schedule(self) -> BindPod:
        (bind,) = of_type(BindPod, self.report(self.engine.schedule(0.0, 1)))
        return bind

    def report(self, instructions: list[Instruction]) -> list[Instruction]:
        """Pass instructions to the traces, as the dispatcher does."""
        for each in instructions:
            if isinstance(each, AttemptResult):
                self.traces.attempt_ended(each)
            elif isinstance(each, PodBound):
                self.traces.pod_bound(each)
        return instructions

    def spans(self) -> dict[str, ReadableSpan]:
        return {span.name: span for span in self._exporter.get_finished_spans()}

    def children_of(self, name: str) -> list[str]:
        spans = self.spans()
        parent = spans[name].context.span_id
        return [
            span.name
            for span in spans.values()
            if span.parent is not None and span.parent.span_id == parent
        ]


def _with_pod(traced: _Traced, cpu: str = "1") -> _Traced:
    nodes = [NodeSeen(make_node(f"n{number}", cpu="4")) for number in range(3)]
    traced.engine.handle([*nodes, PendingPodSeen(make_pod("p", cpu=cpu, namespace="shop"))], 0.0)
    return traced


def test_a_bound_pod_has_a_trace_from_the_first_filter_to_the_binding() -> None:
    traced = _with_pod(_Traced())
    bind = traced.schedule()
    traced.report(traced.engine.handle([BindSucceeded(bind.pod.uid, bind.node_name)], 1.0))
    spans = traced.spans()
    root = spans["Scheduling"]
    assert traced.children_of("Scheduling") == ["SchedulingCycle", "BindingCycle"]
    assert set(traced.children_of("SchedulingCycle")) == CYCLE_POINTS | {
        "PreBindPreFlight",
        "PreBind",
    }
    assert traced.children_of("BindingCycle") == ["PostBind"]
    assert root.attributes == {
        "k8s.namespace.name": "shop",
        "k8s.pod.name": "p",
        "k8s.pod.uid": bind.pod.uid,
        "k8s.node.name": bind.node_name,
        "scheduler.profile": "default-scheduler",
        "scheduler.attempt": 1,
        "scheduler.result": "scheduled",
        "scheduler.evaluated_nodes": 3,
        "scheduler.feasible_nodes": 3,
    }
    assert root.status.status_code is StatusCode.UNSET
    assert spans["Filter"].attributes == {"scheduler.status": "Success"}


def test_spans_lie_within_their_parents() -> None:
    traced = _with_pod(_Traced())
    bind = traced.schedule()
    traced.report(traced.engine.handle([BindSucceeded(bind.pod.uid, bind.node_name)], 1.0))
    spans = traced.spans()
    for parent in ("Scheduling", "SchedulingCycle", "BindingCycle"):
        assert traced.children_of(parent)
        for name in traced.children_of(parent):
            began, ended = spans[name].start_time, spans[name].end_time
            assert began is not None
            assert ended is not None
            assert (spans[parent].start_time or 0) <= began <= ended
            assert ended <= (spans[parent].end_time or 0)


def test_an_unschedulable_pod_has_a_trace_with_the_reason_and_no_binding_cycle() -> None:
    traced = _with_pod(_Traced(), cpu="100")
    traced.report(traced.engine.schedule(0.0, 1))
    root = traced.spans()["Scheduling"]
    assert root.attributes is not None
    assert root.attributes["scheduler.result"] == "unschedulable"
    assert "Insufficient cpu" in str(root.attributes["scheduler.message"])
    assert root.attributes["scheduler.evaluated_nodes"] == 3
    assert traced.children_of("Scheduling") == ["SchedulingCycle"]
    assert traced.children_of("SchedulingCycle") == ["PreFilter", "Filter", "PostFilter"]


def test_a_failed_binding_ends_the_trace_as_an_error_and_keeps_the_decision() -> None:
    traced = _with_pod(_Traced())
    bind = traced.schedule()
    failed = BindFailed(bind.pod.uid, bind.node_name, "node is gone")
    traced.report(traced.engine.handle([failed], 1.0))
    root = traced.spans()["Scheduling"]
    assert root.attributes is not None
    assert root.status.status_code is StatusCode.ERROR
    assert root.attributes["scheduler.result"] == "error"
    assert root.attributes["k8s.node.name"] == bind.node_name
    assert root.attributes["scheduler.evaluated_nodes"] == 3
    assert "BindingCycle" in traced.children_of("Scheduling")


def test_the_end_of_the_process_ends_the_trace_of_a_pod_that_is_being_bound() -> None:
    traced = _with_pod(_Traced())
    bind = traced.schedule()
    traced.traces.end_all()
    root = traced.spans()["Scheduling"]
    assert root.attributes is not None
    assert root.attributes["k8s.pod.uid"] == bind.pod.uid
    assert "BindingCycle" in traced.children_of("Scheduling")


def test_the_next_attempt_of_a_pod_is_a_trace_of_its_own() -> None:
    traced = _with_pod(_Traced(), cpu="6")
    traced.report(traced.engine.schedule(0.0, 1))
    first = traced.spans()["Scheduling"]
    traced.engine.handle([NodeSeen(make_node("large", cpu="8"))], 60.0)
    bind = of_type(BindPod, traced.report(traced.engine.schedule(60.0, 1)))[0]
    traced.report(traced.engine.handle([BindSucceeded(bind.pod.uid, "large")], 61.0))
    second = traced.spans()["Scheduling"]
    assert second.attributes is not None
    assert second.attributes["scheduler.attempt"] == 2
    assert second.context.trace_id != first.context.trace_id


def test_an_attempt_that_is_not_sampled_makes_no_span() -> None:
    traced = _with_pod(_Traced(ALWAYS_OFF))
    bind = traced.schedule()
    traced.report(traced.engine.handle([BindSucceeded(bind.pod.uid, bind.node_name)], 1.0))
    assert traced.spans() == {}


def test_a_second_cycle_of_an_attempt_belongs_to_the_same_trace() -> None:
    traced = _Traced()
    first = traced.traces.trace_cycle("uid")
    assert first is not None
    assert traced.traces.trace_cycle("uid") is first


def test_durations_of_traced_cycles_are_in_the_metrics_too() -> None:
    traced = _with_pod(_Traced())
    traced.schedule()
    # The first cycle is sampled in any case; the second one only because it is traced.
    traced.engine.handle([PendingPodSeen(make_pod("q", cpu="1"))], 0.0)
    traced.schedule()
    line = 'extension_point="Filter",profile="default-scheduler",status="Success"} 2.0'
    assert line in traced.metrics.exposition().decode()


async def test_requests_of_a_job_belong_to_the_binding_cycle_of_its_pod() -> None:
    traced = _with_pod(_Traced())
    bind = traced.schedule()
    seen: list[int] = []

    async def work(_job: BindPod) -> None:
        seen.append(get_current_span().get_span_context().span_id)

    await traced.traces.within(work)(bind)
    assert not get_current_span().get_span_context().is_valid
    traced.report(traced.engine.handle([BindSucceeded(bind.pod.uid, bind.node_name)], 1.0))
    assert seen == [traced.spans()["BindingCycle"].context.span_id]


async def test_a_job_without_a_trace_runs_outside_of_any_trace() -> None:
    traced = _with_pod(_Traced(ALWAYS_OFF))
    bind = traced.schedule()
    seen: list[bool] = []

    async def work(_job: BindPod) -> None:
        seen.append(get_current_span().get_span_context().is_valid)

    await traced.traces.within(work)(bind)
    assert seen == [False]


def test_attempts_that_never_end_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempt_traces, "MAX_OPEN_ATTEMPTS", 2)
    traced = _Traced()
    for uid in ("a", "b", "c"):
        traced.traces.trace_cycle(uid)
    assert [span.name for span in traced.spans().values()] == ["SchedulingCycle", "Scheduling"]


class _Observer:
    """Notes the durations that it receives."""

    def __init__(self) -> None:
        self.received: list[tuple[object, ...]] = []

    def observe_extension_point(self, *given: object) -> None:
        self.received.append(("point", *given))

    def observe_plugin(self, *given: object) -> None:
        self.received.append(("plugin", *given))

    def observe_event(self, *given: object) -> None:
        self.received.append(("event", *given))

    def observe_hint(self, *given: object) -> None:
        self.received.append(("hint", *given))

    def observe_permit_wait(self, *given: object) -> None:
        self.received.append(("permit", *given))


def test_the_durations_of_a_traced_cycle_are_passed_on_unchanged() -> None:
    observer = _Observer()
    tracer = TracerProvider(sampler=ALWAYS_ON, shutdown_on_exit=False).get_tracer("test")
    trace = AttemptTraces(tracer, observer, lambda: 10**18).trace_cycle("uid")
    assert trace is not None
    trace.observe_extension_point("Filter", "Success", "stowage", 0.5)
    trace.observe_plugin("Fit", "Filter", "Success", 0.25)
    trace.observe_event("NodeAdd", 0.125)
    trace.observe_hint("Fit", "NodeAdd", "Queue", 0.0625)
    trace.observe_permit_wait("allowed", 2.0)
    assert observer.received == [
        ("point", "Filter", "Success", "stowage", 0.5),
        ("plugin", "Fit", "Filter", "Success", 0.25),
        ("event", "NodeAdd", 0.125),
        ("hint", "Fit", "NodeAdd", "Queue", 0.0625),
        ("permit", "allowed", 2.0),
    ]
