"""The plots of a report, as data for Plotly's script. Colours of text and grid are the page's."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from stowage.analysis.simulation.estimates import Estimate, PolicySummary, student_quantile
from stowage.analysis.simulation.result import ExperimentResult, Series

COLOURS = (
    "#4477cc",
    "#e07b39",
    "#2f9e6e",
    "#b65fb0",
    "#c9a227",
    "#3aa5b8",
    "#d1495b",
    "#8d7358",
)
_POINTS = 200
_WHOLE = 100.0
_MINUTES_FROM_S = 600.0
_HOURS_FROM_S = 7200.0
_REASON_WIDTH = 44
_MOST_REASONS = 8
#: Of the openb experiment, whose names are those of its published tables.
_TITLES = {
    "alloc_pct": "Allocated GPUs",
    "frag_ratio_pct": "Fragmented GPUs of the idle ones",
    "frag_amount_pct": "Fragmented GPUs of all",
    "unallocated_gpus_pct": "Unallocated GPUs",
    "allocated_gpu_milli": "Allocated thousandths of GPUs",
}


class Figure(msgspec.Struct, frozen=True):
    """One plot.

    Attributes:
        title: What it shows, above the plot.
        data: Traces of Plotly.
        layout: Layout of Plotly.
    """

    title: str
    data: list[dict[str, Any]]
    layout: dict[str, Any]


def colour(index: int) -> str:
    """The colour of a policy by its place; repeats after eight."""
    return COLOURS[index % len(COLOURS)]


def series_figure(name: str, by_policy: Sequence[tuple[str, Sequence[Series]]]) -> Figure:
    """One quantity over time or load: the mean of the seeds, a line a policy, and its interval.

    Args:
        name: The quantity.
        by_policy: Policy -> its series of this name, one a seed; empty for a policy without it.
    """
    data: list[dict[str, Any]] = []
    longest = max((each.x[-1] for _, found in by_policy for each in found if each.x), default=0.0)
    one = next(each for _, found in by_policy for each in found)
    scale, x_title = _x_axis(one.x_unit, longest)
    for index, (policy, found) in enumerate(by_policy):
        if found:
            data += _lines(policy, index, found, scale)
    return Figure(
        title_of(name),
        data,
        {"xaxis": {"title": {"text": x_title}}, "yaxis": {"title": {"text": one.unit}}},
    )


def metrics_figure(title: str, names: Sequence[str], summaries: Sequence[PolicySummary]) -> Figure:
    """Bars of a few metrics of one unit, a colour a policy, with confidence intervals."""
    data = []
    for index, summary in enumerate(summaries):
        found = [summary.metrics[name] for name in names]
        data.append(
            {
                "type": "bar",
                "name": summary.policy,
                "x": [title_of(name) for name in names],
                "y": [each.mean for each in found],
                "error_y": _error_bars(found),
                "marker": {"color": colour(index)},
            }
        )
    axis = {"type": "category", "showticklabels": len(names) > 1}
    return Figure(title, data, {"barmode": "group", "xaxis": axis})


def failures_figure(summaries: Sequence[PolicySummary]) -> Figure:
    """Pods that never got a node, by reason; the most frequent reasons first."""
    totals: dict[str, float] = {}
    for summary in summaries:
        for reason, count in summary.failed.items():
            totals[reason] = totals.get(reason, 0.0) + count
    reasons = sorted(totals, key=lambda reason: (totals[reason], reason))[-_MOST_REASONS:]
    data = [
        {
            "type": "bar",
            "orientation": "h",
            "name": summary.policy,
            "y": ["<br>".join(textwrap.wrap(reason, _REASON_WIDTH)) for reason in reasons],
            "x": [summary.failed.get(reason, 0.0) for reason in reasons],
            "marker": {"color": colour(index)},
        }
        for index, summary in enumerate(summaries)
    ]
    layout = {"barmode": "group", "yaxis": {"type": "category", "automargin": True}}
    return Figure("Pods that never got a node, by reason", data, layout)


def series_by_policy(
    results: Sequence[ExperimentResult], policies: Sequence[str]
) -> dict[str, list[tuple[str, list[Series]]]]:
    """Name of a quantity -> for each policy its series, one a seed."""
    names = dict.fromkeys(each.name for result in results for each in result.series if each.x)
    return {
        name: [
            (
                policy,
                [
                    each
                    for result in results
                    if result.policy == policy
                    for each in result.series
                    if each.name == name and each.x
                ],
            )
            for policy in policies
        ]
        for name in names
    }


def title_of(name: str) -> str:
    """``allocated_cpu_pct`` as words: Allocated cpu."""
    if name in _TITLES:
        return _TITLES[name]
    words = name.removesuffix("_pct").removesuffix("_s").replace("_", " ")
    return words[:1].upper() + words[1:]


def _lines(policy: str, index: int, found: Sequence[Series], scale: float) -> list[dict[str, Any]]:
    """The interval as an area, if there are several seeds, and the mean as a line."""
    x, mean, margin = _mean_over_seeds(found)
    shown = _rounded(x * scale)
    line = {
        "type": "scatter",
        "mode": "lines",
        "name": policy,
        "x": shown,
        "y": _rounded(mean),
        "line": {"color": colour(index), "width": 2},
    }
    if margin is None:
        return [line]
    low, high = mean - margin, mean + margin
    if mean.min() >= 0:
        low = np.maximum(low, 0.0)  # no quantity here is less than nothing
    if found[0].unit == "%" and mean.max() <= _WHOLE:
        high = np.minimum(high, _WHOLE)
    area = {
        "type": "scatter",
        "mode": "lines",
        "name": policy,
        "x": [*shown, *reversed(shown)],
        "y": [*_rounded(high), *reversed(_rounded(low))],
        "fill": "toself",
        "fillcolor": f"{colour(index)}2b",
        "line": {"width": 0},
        "hoverinfo": "skip",
    }
    return [area, line]


def _mean_over_seeds(found: Sequence[Series]) -> tuple[Any, Any, Any]:
    """Positions, mean and margin: where all seeds have values, at most `_POINTS` positions."""
    first = np.asarray(found[0].x)
    if all(each.x == found[0].x for each in found) and len(first) <= 2 * _POINTS:
        x, rows = first, np.array([each.y for each in found])
    else:
        begin, end = max(each.x[0] for each in found), min(each.x[-1] for each in found)
        x = np.linspace(begin, max(begin, end), _POINTS)
        rows = np.array([np.interp(x, each.x, each.y) for each in found])
    num = len(rows)
    if num < 2:
        return x, rows[0], None
    margin = student_quantile(num - 1) * rows.std(axis=0, ddof=1) / math.sqrt(num)
    return x, rows.mean(axis=0), margin


def _x_axis(unit: str, longest: float) -> tuple[float, str]:
    """Scale and title of the horizontal axis."""
    if unit != "s":
        return 1.0, unit
    if longest >= _HOURS_FROM_S:
        return 1 / 3600, "virtual hours"
    if longest >= _MINUTES_FROM_S:
        return 1 / 60, "virtual minutes"
    return 1.0, "virtual seconds"


def _error_bars(found: Sequence[Estimate]) -> dict[str, Any]:
    return {"type": "data", "array": [each.margin or 0.0 for each in found], "thickness": 1.2}


def _rounded(values: Any) -> list[float]:
    """Six digits: a third of the size, and nothing that can be seen."""
    return [float(f"{value:.6g}") for value in values.tolist()]
