"""Parses the table of faults in the documents."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

FAULTS_PAGE = Path(__file__).parents[3] / "docs" / "reference" / "faults.md"
_CODE = re.compile(r"`([^`]+)`")
_METRIC = re.compile(r"^([a-z_:]+)(?:\{(.*)\})?$")
_LABEL = re.compile(r'(\w+)="([^"]*)"')


@dataclass(frozen=True, slots=True)
class Series:
    """A metric and its labels in the table."""

    name: str
    labels: frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Fault:
    """A row of the table.

    Attributes:
        events: Values of ``event`` in log lines.
        alerts: Names of alerts.
    """

    symptom: str
    events: frozenset[str]
    metrics: tuple[Series, ...]
    alerts: frozenset[str]


def faults() -> dict[str, Fault]:
    """All rows, by symptom."""
    text = FAULTS_PAGE.read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return {fault.symptom: fault for fault in map(_fault, lines[2:])}


def _fault(line: str) -> Fault:
    symptom, events, metrics, alerts, _advice = (cell.strip() for cell in line.split("|")[1:-1])
    return Fault(
        symptom,
        frozenset(_CODE.findall(events)),
        tuple(_series(found) for found in _CODE.findall(metrics)),
        frozenset(re.findall(r"Stowage\w+", alerts)),
    )


def _series(text: str) -> Series:
    matched = _METRIC.match(text)
    if matched is None:
        raise ValueError(f"{text} is no metric with labels")
    return Series(matched[1], frozenset(_LABEL.findall(matched[2] or "")))
