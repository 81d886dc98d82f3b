"""The answer of ``stowage simulate``, and its tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from rich.console import RenderableType
from rich.markup import escape

from stowage.analysis.simulation.estimates import Estimate, PolicySummary, significant, summarise
from stowage.analysis.simulation.result import ExperimentResult
from stowage.cli.ask.output import plain_table

_FEW_REASONS = 5
_PERCENT = ("utilisation_", "imbalance", "fragmentation")
_NOTES = (
    "the scheduler takes no virtual time: decisions, bindings and evictions happen at once",
    "extenders accept every node; PreBind plugins succeed",
)


class FailedExperiment(msgspec.Struct, frozen=True):
    """An experiment without a result.

    Attributes:
        trace: The trace.
        policy: The policy.
        seed: The seed.
        reason: Why.
    """

    trace: str
    policy: str
    seed: int
    reason: str

    @property
    def text(self) -> str:
        """The experiment and the reason, on one line."""
        return f"{self.trace}, {self.policy}, seed {self.seed}: {self.reason}"


class SimulationAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """What the policies made of the workloads.

    Attributes:
        experiments: Number of experiments that were asked for.
        policies: A summary for each trace and policy.
        results: The results of all finished experiments.
        unfinished: The experiments that ended without a result.
        notes: What the answer cannot know.
    """

    experiments: int
    policies: list[PolicySummary]
    results: list[ExperimentResult]
    unfinished: list[FailedExperiment]
    notes: tuple[str, ...] = _NOTES


def make_answer(
    experiments: int,
    results: Sequence[ExperimentResult],
    unfinished: Sequence[FailedExperiment],
    notes: Sequence[str] = (),
) -> SimulationAnswer:
    """The answer of the finished experiments; `notes` follow those of every simulation."""
    summaries = summarise(results)
    return SimulationAnswer(
        experiments, summaries, list(results), list(unfinished), (*_NOTES, *notes)
    )


def simulation_tables(answer: SimulationAnswer, wide: bool) -> list[RenderableType]:
    """A table a trace: the metrics, the differences to the first policy, why pods failed."""
    parts: list[RenderableType] = []
    for trace in dict.fromkeys(each.trace for each in answer.policies):
        found = [each for each in answer.policies if each.trace == trace]
        parts += _trace_tables(trace, found, wide)
    parts += [f"[red]no result:[/red] {escape(each.text)}" for each in answer.unfinished]
    missing = answer.experiments - len(answer.results) - len(answer.unfinished)
    if missing:
        parts.append(f"[yellow]{missing} of {answer.experiments} experiments were not run[/yellow]")
    return [*parts, *(f"[dim]{escape(note)}[/dim]" for note in answer.notes)]


def _trace_tables(
    trace: str, policies: Sequence[PolicySummary], wide: bool
) -> Iterable[RenderableType]:
    most = max(len(each.seeds) for each in policies)
    text = f"mean of {most} seeds ± 95 % confidence interval" if most > 1 else "one seed"
    yield f"[bold]{escape(trace)}[/bold]: {text}"
    yield _metric_table(policies)
    first, *others = policies
    if others and any(each.differences for each in others):
        yield f"Difference to {escape(first.policy)}, seed by seed; * where the interval excludes 0"
        yield _difference_table(others)
    if any(each.failed for each in policies):
        yield _failure_table(policies, None if wide else _FEW_REASONS)


def _metric_table(policies: Sequence[PolicySummary]) -> RenderableType:
    table = plain_table("metric", *(escape(each.policy) for each in policies))
    for name in _names(each.metrics for each in policies):
        cells = [each.metrics.get(name) for each in policies]
        table.add_row(_label(name), *map(_cell, cells))
    return table


def _difference_table(policies: Sequence[PolicySummary]) -> RenderableType:
    table = plain_table("metric", *(escape(each.policy) for each in policies))
    for name in _names(each.differences for each in policies):
        cells = [each.differences.get(name) for each in policies]
        if any(one is not None and (one.mean or one.margin) for one in cells):
            table.add_row(_label(name), *(f"{_cell(one, '+')}{_mark(one)}" for one in cells))
    return table


def _failure_table(policies: Sequence[PolicySummary], most: int | None) -> RenderableType:
    table = plain_table("pods that never got a node", *(escape(each.policy) for each in policies))
    counts = {name: 0.0 for each in policies for name in each.failed}
    for each in policies:
        for name, number in each.failed.items():
            counts[name] += number
    ordered = sorted(counts, key=lambda name: (-counts[name], name))
    for name in ordered[:most]:
        table.add_row(escape(name), *(f"{each.failed.get(name, 0):.1f}" for each in policies))
    if ordered[:most] != ordered:
        table.add_row(f"{len(ordered) - len(ordered[:most])} other reasons: -o wide")
    return table


def _names(metrics: Iterable[dict[str, Estimate]]) -> list[str]:
    return list(dict.fromkeys(name for each in metrics for name in each))


def _label(name: str) -> str:
    return escape(f"{name} (%)" if name.startswith(_PERCENT) else name)


def _cell(one: Estimate | None, sign: str = "") -> str:
    if one is None:
        return "-"
    mean = f"{one.mean:{sign},.5g}" if abs(one.mean) < 1e5 else f"{one.mean:{sign},.0f}"
    return mean if one.margin is None else f"{mean} ± {significant(one.margin, 3)}"


def _mark(one: Estimate | None) -> str:
    return " *" if one is not None and one.is_zero_excluded else ""
