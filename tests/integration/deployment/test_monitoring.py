"""The alerts and the dashboard of the manifests find the targets of their own installation."""

import json
import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

import promql_parser
import pytest
import yaml

from tests.docs.pages import DOCS, blocks
from tests.integration.deployment.deployed import (
    MANIFESTS,
    Json,
    kustomized,
    needs_kubectl,
    the,
    with_component,
)
from tests.support.monitoring.promql import Scrape, evaluate

pytestmark = needs_kubectl


def _rules(objects: list[Json]) -> list[Json]:
    (group,) = the(objects, "PrometheusRule")["spec"]["groups"]
    rules: list[Json] = group["rules"]
    return rules


@pytest.mark.parametrize("overlay", ["monitoring", "renamed"])
def test_the_alert_on_absence_names_the_targets_that_the_service_monitor_finds(
    overlay: str, tmp_path: Path
) -> None:
    objects = with_component(overlay, "monitoring", tmp_path)
    service = the(objects, "Service")["metadata"]
    target = {"job": service["name"], "namespace": service["namespace"]}
    rules = _rules(objects)
    (absent,) = [rule["expr"] for rule in rules if rule["alert"] == "StowageAbsent"]
    answer = 'scheduler_cache_size{type="nodes"} 1\n'
    assert evaluate(absent, [Scrape.of(0, answer, **target)]) == {}
    for label in target:
        other = target | {label: "another"}
        found = evaluate(absent, [Scrape.of(0, answer, **other)])
        assert found == {frozenset(target.items()): 1.0}
    for rule in rules:
        for pattern in re.findall(r'job=~"([^"]+)"', rule["expr"]):
            assert re.fullmatch(pattern, target["job"])


def test_the_replacement_of_the_page_makes_links_of_the_runbooks(tmp_path: Path) -> None:
    page = DOCS / "how-to" / "monitor.md"
    (shown,) = [each.text for each in blocks(page) if "sourceValue" in each.text]
    shutil.copytree(MANIFESTS, tmp_path / "manifests")
    content = yaml.safe_load(shown) | {"resources": ["../monitoring"]}
    folder = tmp_path / "manifests/overlays/links"
    folder.mkdir()
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(content))
    for rule in _rules(kustomized(folder)):
        anchor = rule["alert"].lower()
        link = f"https://DOCUMENTS/reference/alerts.html#{anchor}"
        assert rule["annotations"]["runbook"] == link


def _panels() -> list[Json]:
    dashboard = json.loads((MANIFESTS / "components/monitoring/stowage.json").read_text())
    panels: list[Json] = dashboard["panels"]
    return panels


def _expressions(panel: Json) -> list[str]:
    return [target["expr"] for target in panel["targets"]]


def _selectors(expression: str) -> Iterator[tuple[str, dict[str, str]]]:
    """The metrics of an expression with the labels that are compared for equality."""
    for name, matchers in re.findall(r"\b([a-z]+_[a-z_]+)\{([^}]*)\}", expression):
        yield name, dict(re.findall(r'(\w+)="([^"]*)"', matchers))


@pytest.mark.parametrize("panel", _panels(), ids=lambda panel: str(panel["title"]))
def test_a_panel_shows_the_chosen_installation_only(panel: Json) -> None:
    for expression in _expressions(panel):
        promql_parser.parse(expression.replace("$__rate_interval", "5m"))
        selectors = list(_selectors(expression))
        assert len(selectors) == expression.count("{")
        for _, labels in selectors:
            assert (labels["namespace"], labels["job"]) == ("$namespace", "$job")


def test_panels_have_numbers_of_their_own_and_do_not_overlap() -> None:
    panels = _panels()
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells = [
        (x, y)
        for at in (panel["gridPos"] for panel in panels)
        for x in range(at["x"], at["x"] + at["w"])
        for y in range(at["y"], at["y"] + at["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24


def _metrics(expressions: Iterable[str]) -> set[str]:
    return {
        re.sub("_(bucket|count|sum)$", "", name)
        for expression in expressions
        for name, _ in _selectors(expression)
    }


def test_the_dashboard_shows_every_metric_that_an_alert_reads() -> None:
    read = _metrics(rule["expr"] for rule in _rules(kustomized(MANIFESTS / "overlays/monitoring")))
    assert len(read) > 10
    assert read <= _metrics(expr for panel in _panels() for expr in _expressions(panel))
