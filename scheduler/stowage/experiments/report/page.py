"""Puts a report together: one HTML file."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from stowage.analysis.simulation.estimates import Estimate, PolicySummary, summarise
from stowage.analysis.simulation.result import ExperimentResult, Series
from stowage.experiments.extra import import_extra
from stowage.experiments.report.figures import (
    Figure,
    colour,
    failures_figure,
    metrics_figure,
    series_by_policy,
    series_figure,
    title_of,
)

_HERE = Path(__file__).parent
#: Nothing may be loaded: the page is complete, wherever it is opened.
_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
)
_BAR_GROUPS = (
    ("Waiting time, seconds", "wait_"),
    ("Mean utilisation, %", "utilisation_"),
)
_SINGLE_BARS = ("nodes_used", "nodes_used_max", "fragmentation", "imbalance", "preempted", "failed")


class Section(msgspec.Struct, frozen=True):
    """A part of a report.

    Attributes:
        title: Its heading.
        tables: HTML.
        figures: Its plots.
        policies: The policies of its plots, in the order of their colours.
    """

    title: str
    tables: Sequence[str]
    figures: Sequence[Figure]
    policies: Sequence[str] = ()


def write_report(path: Path, title: str, subtitle: str, sections: Sequence[Section]) -> None:
    """Write a report.

    Raises:
        MissingExtra: Plotly is not installed.
        OSError: The file cannot be written.
    """
    path.write_text(page(title, subtitle, sections), encoding="utf-8")


def page(title: str, subtitle: str, sections: Sequence[Section]) -> str:
    """The HTML of a report.

    Raises:
        MissingExtra: Plotly is not installed.
    """
    script = import_extra("plotly.offline", "--report").get_plotlyjs()
    figures = [figure for section in sections for figure in section.figures]
    numbers = iter(range(len(figures)))
    body = "".join(_section(section, numbers) for section in sections)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{html.escape(_POLICY)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{html.escape(title)}</title>
<style>{_own("style.css")}</style>
</head>
<body>
<header><h1>{html.escape(title)}</h1><p>{html.escape(subtitle)}</p></header>
{body}
<script>{script}</script>
<script>const figures = {_for_script(figures)};
{_own("theme.js")}</script>
</body>
</html>
"""


def simulation_sections(results: Sequence[ExperimentResult]) -> list[Section]:
    """A section a trace: metrics, differences to the first policy, and plots."""
    summaries = summarise(results)
    sections = []
    for trace in dict.fromkeys(each.trace for each in summaries):
        found = [each for each in summaries if each.trace == trace]
        policies = [each.policy for each in found]
        of_trace = [each for each in results if each.trace == trace]
        by_name = series_by_policy(of_trace, policies)
        plots = [series_figure(name, each) for name, each in by_name.items() if _is_moving(each)]
        tables = [_metric_table(found), *_difference_tables(found)]
        figures = [*plots, *_metric_figures(found)]
        sections.append(Section(trace, tables, figures, policies))
    return sections


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """An HTML table; the cells are texts, the first column names the row."""
    heads = "".join(f"<th>{html.escape(each)}</th>" for each in head)
    lines = "".join(
        f"<tr><th>{html.escape(name)}</th>"
        + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells)
        + "</tr>"
        for name, *cells in rows
    )
    return (
        f'<div class="table"><table><caption>{html.escape(caption)}</caption>'
        f"<thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table></div>"
    )


def number(estimate: Estimate | None, sign: str = "") -> str:
    """A mean with its margin, as a text."""
    if estimate is None:
        return "-"
    mean = (
        f"{estimate.mean:{sign},.5g}" if abs(estimate.mean) < 1e5 else f"{estimate.mean:{sign},.0f}"
    )
    return mean if not estimate.margin else f"{mean} ± {estimate.margin:.2g}"


def _metric_figures(summaries: Sequence[PolicySummary]) -> Iterable[Figure]:
    shared = [
        name for name in summaries[0].metrics if all(name in each.metrics for each in summaries)
    ]
    for title, prefix in _BAR_GROUPS:
        names = [name for name in shared if name.startswith(prefix)]
        if any(_mean(each, name) for each in summaries for name in names):
            yield metrics_figure(title, names, summaries)
    for name in _SINGLE_BARS:
        if name in shared and any(_mean(each, name) for each in summaries):
            yield metrics_figure(title_of(name), [name], summaries)
    if any(each.failed for each in summaries):
        yield failures_figure(summaries)


def _mean(summary: PolicySummary, name: str) -> float:
    return summary.metrics[name].mean


def _is_moving(by_policy: Sequence[tuple[str, Sequence[Series]]]) -> bool:
    """Whether a plot shows more than one value; the table has that value."""
    return len({y for _, found in by_policy for each in found for y in each.y}) > 1


def _metric_table(summaries: Sequence[PolicySummary]) -> str:
    num_seeds = max(len(each.seeds) for each in summaries)
    caption = (
        f"Mean of {num_seeds} seeds ± 95 % confidence interval" if num_seeds > 1 else "One seed"
    )
    names = dict.fromkeys(name for each in summaries for name in each.metrics)
    rows = [
        (title_of(name) + _unit(name), *(number(each.metrics.get(name)) for each in summaries))
        for name in names
    ]
    return table(caption, ("", *(each.policy for each in summaries)), rows)


def _difference_tables(summaries: Sequence[PolicySummary]) -> Iterable[str]:
    first, *others = summaries
    names = dict.fromkeys(
        name
        for each in others
        for name, found in each.differences.items()
        if found.mean or found.margin
    )
    if names:
        caption = f"Difference to {first.policy}, seed by seed; * where the interval excludes 0"
        rows = [
            (title_of(name) + _unit(name), *(_difference(each, name) for each in others))
            for name in names
        ]
        yield table(caption, ("", *(each.policy for each in others)), rows)


def _difference(summary: PolicySummary, name: str) -> str:
    found = summary.differences.get(name)
    mark = " *" if found is not None and found.is_zero_excluded else ""
    return f"{number(found, '+')}{mark}"


def _unit(name: str) -> str:
    return ", s" if name.endswith("_s") else ", %" if name.endswith("_pct") else ""


def _section(section: Section, numbers: Iterable[int]) -> str:
    keys = "".join(
        f'<li><span style="background:{colour(index)}"></span>{html.escape(policy)}</li>'
        for index, policy in enumerate(section.policies)
    )
    legend = f'<ul class="legend">{keys}</ul>' if keys else ""
    plots = "".join(
        f"<figure><figcaption>{html.escape(figure.title)}</figcaption>"
        f'<div class="plot" id="figure-{index}"></div></figure>'
        for figure, index in zip(section.figures, numbers, strict=False)
    )
    return (
        f"<section><h2>{html.escape(section.title)}</h2>{legend}"
        f'<div class="tables">{"".join(section.tables)}</div>'
        f'<div class="plots">{plots}</div></section>\n'
    )


def _for_script(figures: Sequence[Figure]) -> str:
    """JSON that cannot end the script element it stands in."""
    content = json.dumps(msgspec.to_builtins(figures), separators=(",", ":"), allow_nan=False)
    return content.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _own(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")
