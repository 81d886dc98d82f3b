"""The documented fault table has the log lines, metrics and alerts of the code, and all of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import yaml

import stowage
from docs.tables import defined_metrics
from stowage.operator.signals import STOPPED_TOO_LONG
from tests.support.monitoring.fault_table import FAULTS_PAGE, faults

PACKAGE = Path(stowage.__path__[0])
ROOMS = (PACKAGE / "operator", PACKAGE / "cli")
WARNING_LEVELS = {"warning", "error", "exception", "critical"}
LEVELS = WARNING_LEVELS | {"debug", "info"}
RULES = Path("manifests/components/monitoring/prometheus-rule.yaml")
#: Metrics that have no definition in the code: of libraries and of the active configuration.
OTHER_METRICS = {
    "process_resident_memory_bytes",
    "stowage_configuration_last_reload_successful",
}


def _log_calls() -> Iterator[tuple[str, str]]:
    """Level and event of every log call with a constant event."""
    for room in ROOMS:
        for file in room.rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call):
                    yield from _log_call(node)


def _log_call(call: ast.Call) -> Iterator[tuple[str, str]]:
    function = call.func
    if isinstance(function, ast.Attribute) and function.attr in LEVELS:
        owner, level = function.value, function.attr
        if not (isinstance(owner, ast.Name | ast.Attribute) and ast.unparse(owner).endswith("log")):
            return
    elif isinstance(function, ast.Name) and function.id in ("write", "log_retry", "log_failure"):
        level = "warning"
    else:
        return
    for argument in call.args[:1]:
        for text in ast.walk(argument):
            if isinstance(text, ast.Constant) and isinstance(text.value, str):
                yield level, text.value


EVENTS = set(_log_calls()) | {("error", "stopped for longer than the lease lasts")}
#: The results of attempts are log events too.
EVENT_NAMES = {event for _, event in EVENTS} | {"scheduled", "unschedulable", "error"}


def _alerts() -> set[str]:
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["spec"]["groups"]
    return {rule["alert"] for group in groups for rule in group["rules"]}


def test_the_line_that_bypasses_the_log_is_the_documented_one() -> None:
    assert b'"stopped for longer than the lease lasts"' in STOPPED_TOO_LONG


def test_every_log_line_of_the_table_exists() -> None:
    assert {event for fault in faults().values() for event in fault.events} - EVENT_NAMES == set()


def test_every_warning_and_error_is_documented() -> None:
    # Preemptions are logged by the same call as failures, but are no fault.
    warnings = {event for level, event in EVENTS if level in WARNING_LEVELS} - {"preempted"}
    assert len(warnings) > 25
    page = FAULTS_PAGE.read_text(encoding="utf-8")
    assert {event for event in warnings if f"`{event}`" not in page} == set()


def test_every_metric_of_the_table_exists_with_these_labels() -> None:
    defined = {each.name: set(each.labels) for each in defined_metrics()}
    asked = {series for fault in faults().values() for series in fault.metrics}
    unknown = {each.name for each in asked} - defined.keys() - OTHER_METRICS
    assert unknown == set()
    for each in asked:
        assert {label for label, _ in each.labels} <= defined.get(each.name, set()), each


def test_every_alert_belongs_to_a_fault_and_every_named_alert_exists() -> None:
    alerts = _alerts()
    assert set().union(*(fault.alerts for fault in faults().values())) - alerts == set()
    # StowageErrors fires on any kind of error, so it belongs to no single fault.
    in_faults = set().union(*(fault.alerts for fault in faults().values()))
    assert alerts - in_faults <= {"StowageErrors"}
