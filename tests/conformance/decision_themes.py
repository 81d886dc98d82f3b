"""Compare our decisions with recorded ones, and replay the record from attempt to attempt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from stowage.framework import Framework
from tests.conformance.attempts import Answer, attempt
from tests.conformance.claim_api import claim_record
from tests.conformance.claim_attempts import claim_attempt, comparable, finish_attempt
from tests.conformance.decision_cases import (
    Cluster,
    Record,
    build_cluster,
    build_framework,
)

_FIELDS = (
    "outcome",
    "preEnqueue",
    "nodesTotal",
    "feasible",
    "singleFeasible",
    "viaNominatedNode",
    "skippedScorePlugins",
    "scores",
    "total",
    "best",
    "unschedulablePlugins",
    "preFilterMessage",
    "filterMessage",
    "message",
)
#: Says which pod and attempt it is, or what follows from other fields.
_NOT_COMPARED = ("pod", "attempt")


@dataclass(frozen=True)
class Difference:
    """A field on which our decision and kube-scheduler's differ."""

    case: str
    attempt: str
    field: str
    want: object
    got: object

    def __str__(self) -> str:
        return f"{self.case} {self.attempt}: {self.field}: want {self.want!r}, got {self.got!r}"


@dataclass
class ThemeReport:
    """Result of a theme.

    Attributes:
        explained: Attempts that differ for a known reason, counted by the reason.
    """

    theme: str
    cases: int = 0
    failed_cases: int = 0
    attempts: int = 0
    agreeing: int = 0
    explained: dict[str, int] = field(default_factory=dict)
    differences: list[Difference] = field(default_factory=list)


def run_decision_theme(theme: str, rows: Iterable[Record]) -> ThemeReport:
    """Compare every case of a theme."""
    report = ThemeReport(theme)
    for row in rows:
        report.cases += 1
        before = len(report.differences)
        for differences, reason in compare_case(row):
            report.attempts += 1
            if reason:
                report.explained[reason] = report.explained.get(reason, 0) + 1
            elif not differences:
                report.agreeing += 1
            report.differences += differences
        report.failed_cases += len(report.differences) > before
    return report


def compare_case(row: Record) -> Iterator[tuple[list[Difference], str]]:
    """For each attempt: the differences, or none and the known reason for them."""
    case, attempts = row["case"], row["result"]["pods"]
    cluster = build_cluster(case)
    framework = build_framework(case)
    framework.read_snapshots(cluster.cache.snapshot)
    if case["theme"].startswith("dra-"):
        yield from _compare_claims(row, cluster, framework)
        return
    for want in attempts:
        key = want["pod"]
        where = f"{key} attempt {want['attempt']}"
        got = attempt(framework, cluster, key)
        differences = list(_compare(want, got))
        if differences and cluster.misses_ports(key) and _is_about_ports(cluster, want, got):
            yield [], "a host port that kube-scheduler's cache forgot"
        else:
            yield [Difference(case["id"], where, *each) for each in differences], ""
        _follow(cluster, case, want, framework)


def _compare_claims(
    row: Record, cluster: Cluster, framework: Framework
) -> Iterator[tuple[list[Difference], str]]:
    """For each attempt of a case with claims, and for the claims after the last one."""
    case, attempts = row["case"], row["result"]["pods"]
    held = case["options"].get("holdPreBind", ())
    for want in attempts:
        key = want["pod"]
        got, state = claim_attempt(framework, cluster, key)
        cluster.api.carry_out(state.take_instructions())
        if want["outcome"] in ("Scheduled", "PreBindFailed", "ReserveFailed"):
            node_name = want["chosen"]
            if node_name in got.get("best", ()):
                got["chosen"] = node_name
            got |= finish_attempt(framework, cluster, key, node_name, is_held=key in held)
        cluster.see_claims()
        if writes := cluster.api.take_writes():
            got["writes"] = writes
        expected = comparable({k: each for k, each in want.items() if k not in _NOT_COMPARED})
        found = comparable({k: each for k, each in got.items() if k not in _NOT_COMPARED})
        where = f"{key} attempt {want['attempt']}"
        differences = list(_entries("", expected, found))
        yield [Difference(case["id"], where, *each) for each in differences], ""
    expected = comparable(row["result"]["claims"])
    found = comparable({key: claim_record(each) for key, each in cluster.api.claims.items()})
    differences = list(_entries("claims", expected, found))
    yield [Difference(case["id"], "after the last attempt", *each) for each in differences], ""


def _is_about_ports(cluster: Cluster, want: Record, got: Answer) -> bool:
    """Whether nodes differ only where kube-scheduler forgot a host port.

    There we reject the pod for its ports and kube-scheduler does not. Scores and messages differ
    as a consequence.
    """
    expected, found = want.get("nodes", {}), got.get("nodes", {})
    differing = {name for name in {*expected, *found} if expected.get(name) != found.get(name)}
    if not differing or not differing <= cluster.forgotten_ports:
        return False
    return all(
        "NodePorts" in _rejectors(found.get(name, {}))
        and "NodePorts" not in _rejectors(expected.get(name, {}))
        for name in differing
    )


def _rejectors(record: Record) -> set[str]:
    return {record.get("filter", {}).get("plugin", ""), *record.get("alsoRejectedBy", {})}


def _compare(want: Record, got: Answer) -> Iterator[tuple[str, object, object]]:
    for name in _FIELDS:
        expected = want.get(name)
        if expected == got.get(name):
            continue
        if isinstance(expected, dict) and isinstance(got.get(name), dict):
            yield from _entries(name, expected, got[name])
        else:
            yield name, expected, got.get(name)
    if "preemption" in want:
        yield from _entries("preemption", want["preemption"], got.get("preemption", {}))
    if "preFilter" in want:
        yield from _entries("preFilter", want["preFilter"], got.get("preFilter", {}))
        yield from _entries("nodes", want.get("nodes", {}), got.get("nodes", {}))


def _entries(name: str, want: Record, got: Record) -> Iterator[tuple[str, object, object]]:
    """The entries in which two mappings differ."""
    for key in sorted({*want, *got}):
        if want.get(key) != got.get(key):
            yield f"{name}[{key}]", want.get(key), got.get(key)


def _follow(cluster: Cluster, case: Record, want: Record, framework: Framework) -> None:
    """Update the cluster as kube-scheduler did after an attempt."""
    key = want["pod"]
    if want["outcome"] == "Scheduled":
        cluster.place(key, want["chosen"], framework)
        return
    preemption = want.get("preemption", {})
    if preemption.get("code") == "Success":
        for other in preemption.get("clearedNominations", ()):
            cluster.nominations.pop(other, None)
        cluster.nominations[key] = preemption["nominatedNode"]
        if case.get("options", {}).get("afterPreemption") == "evict":
            cluster.evict(preemption["victims"])
    elif preemption.get("clearsNomination"):
        cluster.nominations.pop(key, None)
