"""The report of a search: the trials, the front, the importance of each setting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stowage.analysis.tuning.objectives import METRICS, Scores
from stowage.cli.tune.finding import Finding, Gain
from stowage.experiments.report.figures import Figure, colour
from stowage.experiments.report.page import Section, number, table
from stowage.experiments.search import Trial

_MUTED = "#8a94a3"


def search_section(
    objectives: Sequence[str],
    trials: Sequence[Trial],
    front: Sequence[Trial],
    base: Scores,
    importances: Mapping[str, Mapping[str, float]],
) -> Section:
    """The search itself.

    Args:
        objectives: Names of `METRICS`.
        trials: All that have ended.
        front: Those that no other is better than.
        base: The scores of the present configuration.
        importances: Objective -> setting -> importance.
    """
    scored = [(each, each.scores) for each in trials if each.scores is not None]
    if len(objectives) > 1:
        plots = [
            _front(objectives, first, second, scored, front, base)
            for second in range(1, len(objectives))
            for first in range(second)
        ]
    else:
        plots = [_history(objectives[0], scored, base)]
    plots += [_importance(each, found) for each, found in importances.items()]
    names = list(dict.fromkeys(name for each in front for name in each.choices))
    rows = [(name, *(str(each.choices[name]) for each in front)) for name in names]
    rows += [
        (METRICS[objective], f"{base.values[index]:.5g}", *_values(front, index))
        for index, objective in enumerate(objectives)
    ]
    heads = ("", *(f"trial {each.number}" for each in front))
    settings = table("Settings of the front", heads, rows[: len(names)])
    reached = table(
        "What they reach on the arrivals of the search",
        ("", "present", *heads[1:]),
        rows[len(names) :],
    )
    return Section("Search", [settings, reached], plots)


def gain_section(finding: Finding) -> Section:
    """What the chosen trial gains."""
    tables = [
        _gain_table("On the arrivals of the search", finding.trained),
        _gain_table("On the arrivals that were held back", finding.held_back),
    ]
    text = "confirmed" if finding.is_confirmed else "not confirmed"
    title = f"Trial {finding.trial.number}: the gain is {text} on the held-back arrivals"
    return Section(title, tables, [])


def _values(front: Sequence[Trial], index: int) -> list[str]:
    return [f"{each.scores.values[index]:.5g}" for each in front if each.scores is not None]


def _gain_table(caption: str, gains: Sequence[Gain]) -> str:
    rows = [
        (each.metric, f"{each.present:.5g}", f"{each.tuned:.5g}", number(each.difference, "+"))
        for each in gains
    ]
    return table(caption, ("", "present", "tuned", "difference"), rows)


def _points(
    name: str, x: Sequence[Any], y: Sequence[float], texts: Sequence[str], style: dict[str, Any]
) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "x": list(x),
        "y": list(y),
        "text": list(texts),
        "marker": style,
    }


def _front(
    objectives: Sequence[str],
    first: int,
    second: int,
    scored: Sequence[tuple[Trial, Scores]],
    front: Sequence[Trial],
    base: Scores,
) -> Figure:
    """Two objectives of all trials; the front and the present configuration stand out."""
    best = [(each, each.scores) for each in front if each.scores is not None]
    data = []
    for name, shown, style in (
        ("trial", scored, {"color": _MUTED, "size": 6}),
        ("front", best, {"color": colour(0), "size": 10}),
    ):
        x = [scores.values[first] for _, scores in shown]
        y = [scores.values[second] for _, scores in shown]
        texts = [f"trial {trial.number}" for trial, _ in shown]
        data.append(_points(name, x, y, texts, style))
    at = ([base.values[first]], [base.values[second]])
    data.append(
        _points("present", *at, ["present"], {"color": colour(1), "size": 12, "symbol": "diamond"})
    )
    title = f"Front: {objectives[first]} and {objectives[second]} (present: diamond)"
    axes = {
        axis: {"title": {"text": METRICS[objectives[place]]}, "rangemode": "normal"}
        for axis, place in (("xaxis", first), ("yaxis", second))
    }
    return Figure(title, data, axes)


def _history(objective: str, scored: Sequence[tuple[Trial, Scores]], base: Scores) -> Figure:
    """Each trial, and the present configuration as a line."""
    x = [trial.number for trial, _ in scored]
    y = [scores.values[0] for _, scores in scored]
    texts = [f"trial {number}" for number in x]
    line = {
        "type": "scatter",
        "mode": "lines",
        "name": "present",
        "x": [min(x, default=0), max(x, default=1)],
        "y": [base.values[0]] * 2,
        "line": {"color": colour(1), "dash": "dash"},
    }
    axes = {
        "xaxis": {"title": {"text": "trial"}},
        "yaxis": {"title": {"text": METRICS[objective]}, "rangemode": "normal"},
    }
    title = f"Trials: {objective} (present: dashed line)"
    return Figure(
        title, [_points("trial", x, y, texts, {"color": colour(0), "size": 7}), line], axes
    )


def _importance(objective: str, found: Mapping[str, float]) -> Figure:
    ordered = sorted(found, key=lambda name: found[name])
    bars = {
        "type": "bar",
        "orientation": "h",
        "x": [found[name] for name in ordered],
        "y": ordered,
        "marker": {"color": colour(2)},
    }
    layout = {"yaxis": {"type": "category", "automargin": True}}
    return Figure(
        f"Importance for {objective} (PED-ANOVA, best tenth of the trials)", [bars], layout
    )
