"""A report is one file: every number is in it, and nothing in it is fetched from elsewhere."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest

from stowage.analysis.simulation.estimates import estimate
from stowage.analysis.simulation.result import ExperimentResult, Series
from stowage.experiments.report.figures import Figure, series_figure, title_of
from stowage.experiments.report.page import page, simulation_sections, write_report
from tests.unit.experiments.experiments import make_result

HOSTILE = "</script><script>alert(1)</script>"


def results() -> list[ExperimentResult]:
    """Two policies, three seeds."""
    return [
        make_result(
            policy,
            seed,
            reasons={"too much": seed},
            nodes_used=used + seed,
            wait_p50_s=2.0 * seed,
            preempted=0.0,
        )
        for policy, used in (("default", 10.0), (HOSTILE, 7.0))
        for seed in (1, 2, 3)
    ]


class _Parsed(HTMLParser):
    """Notes addresses and the texts of cells and headings."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.texts: list[str] = []
        self.num_scripts = 0
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inside = tag
        self.num_scripts += tag == "script"
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_data(self, data: str) -> None:
        if self._inside not in ("script", "style"):
            self.texts.append(data.strip())


def embedded_figures(text: str) -> list[dict[str, Any]]:
    """What the page's script draws."""
    found = re.search(r"const figures = (.*);\n", text)
    assert found is not None
    figures: list[dict[str, Any]] = json.loads(found[1])
    return figures


@pytest.fixture(scope="module")
def report() -> str:
    return page("Simulation", "four & more", simulation_sections(results()))


def test_nothing_is_fetched_from_elsewhere(report: str) -> None:
    parsed = _Parsed(report)
    assert parsed.addresses == []
    assert "default-src 'none'" in report.replace("&#x27;", "'")
    assert len(report) > 1_000_000  # Plotly's script is inside


def test_names_cannot_end_the_script_or_become_elements(report: str) -> None:
    parsed = _Parsed(report)
    assert parsed.num_scripts == 2
    assert HOSTILE in parsed.texts


def test_the_tables_have_means_and_paired_differences(report: str) -> None:
    texts = _Parsed(report).texts
    assert "12 ± 2.5" in texts  # 11, 12, 13: 4.303 / sqrt(3)
    assert "-3 *" in texts  # 3 less with every seed
    assert "Difference to default, seed by seed; * where the interval excludes 0" in texts


def test_each_figure_is_valid_for_plotly_and_has_its_place(report: str) -> None:
    figures = embedded_figures(report)
    titles = [each["title"] for each in figures]
    assert titles == [
        "Pending",
        "Waiting time, seconds",
        "Nodes used",
        "Pods that never got a node, by reason",
    ]
    for index, each in enumerate(figures):
        go.Figure(data=each["data"], layout=each["layout"])
        assert f'id="figure-{index}"' in report


def test_a_plot_without_a_change_is_left_to_the_table() -> None:
    (section,) = simulation_sections(results())
    assert "Preempted" not in [each.title for each in section.figures]
    assert any("Preempted" in each for each in section.tables)


def _line_and_area(figure: Figure) -> tuple[dict[str, Any], dict[str, Any]]:
    area, line = figure.data
    return line, area


def test_a_line_is_the_mean_of_the_seeds_and_its_area_the_interval() -> None:
    seeds = [Series("pending", "pods", [0.0, 60.0], [10.0, y]) for y in (20.0, 22.0, 27.0)]
    line, area = _line_and_area(series_figure("pending", [("p", seeds)]))
    assert (line["x"], line["y"]) == ([0.0, 60.0], [10.0, 23.0])
    margin = estimate([20.0, 22.0, 27.0]).margin
    assert margin is not None
    assert np.allclose(area["y"], [10.0, 23.0 + margin, 23.0 - margin, 10.0], atol=1e-3)


def test_seeds_of_different_lengths_are_compared_where_all_have_values() -> None:
    long = Series("pending", "pods", [0.0, 7200.0, 14400.0], [0.0, 10.0, 0.0])
    short = Series("pending", "pods", [0.0, 7200.0], [0.0, 20.0])
    figure = series_figure("pending", [("p", [long, short])])
    line, _ = _line_and_area(figure)
    assert figure.layout["xaxis"]["title"]["text"] == "virtual hours"
    assert (line["x"][-1], line["y"][-1]) == (2.0, 15.0)


def test_a_series_over_load_says_so() -> None:
    series = Series("alloc_pct", "%", [0.0, 100.0], [0.0, 80.0], "% of arrived load")
    figure = series_figure("alloc_pct", [("p", [series])])
    assert figure.layout["xaxis"]["title"]["text"] == "% of arrived load"
    assert figure.title == "Allocated GPUs"
    assert title_of("allocated_cpu_pct") == "Allocated cpu"


def test_the_interval_of_a_share_ends_at_the_whole() -> None:
    seeds = [Series("allocated", "%", [0.0, 60.0], [0.0, y]) for y in (80.0, 99.0)]
    _, area = _line_and_area(series_figure("allocated", [("p", seeds)]))
    assert max(area["y"]) == 100.0


def test_a_report_that_cannot_be_written_names_its_file(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="none"):
        write_report(tmp_path / "none" / "report.html", "t", "s", [])
