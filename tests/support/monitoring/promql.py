"""Evaluates the PromQL of our alerts, parsed by a library, over a few scrapes.

A series is a name with labels. Over a range the first and the last sample count, with counter
resets corrected and without Prometheus' extrapolation to the ends of the range, so increases are
at most those of Prometheus. A range is open to the left, as since Prometheus 3. Unsupported syntax
raises, so that no alert passes unevaluated.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf, nan
from typing import Any, TypeAlias

import promql_parser
from prometheus_client.parser import text_string_to_metric_families

Series: TypeAlias = frozenset[tuple[str, str]]
Vector: TypeAlias = dict[Series, float]

#: The labels of a target that the ServiceMonitor of the manifests finds.
TARGET: Mapping[str, str] = {"namespace": "stowage-system", "job": "stowage", "instance": "one"}

_COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "==": operator.eq,
    "!=": operator.ne,
}
_AGGREGATES: Mapping[str, Callable[[Sequence[float]], float]] = {"sum": sum, "max": max, "min": min}


@dataclass(frozen=True, slots=True)
class Scrape:
    """The samples of /metrics at a time in seconds; every sample has the labels of its target."""

    at: float
    samples: Mapping[str, Vector]
    #: Selector -> its series; a scrape is in the ranges of many evaluations.
    selected: dict[str, Vector] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, at: float, text: str, **target: str) -> Scrape:
        """Parse an exposition of one target, which has other labels than the default ones."""
        labels_of_target = {**TARGET, **target}
        samples: dict[str, Vector] = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                labels = frozenset({**sample.labels, **labels_of_target}.items())
                samples.setdefault(sample.name, {})[labels] = float(sample.value)
        return cls(at, samples)

    def beside(self, other: Scrape) -> Scrape:
        """Merge the scrapes of two targets at the same time."""
        names = self.samples.keys() | other.samples.keys()
        both = {
            name: {**self.samples.get(name, {}), **other.samples.get(name, {})} for name in names
        }
        return Scrape(self.at, both)


def fires(rule: Mapping[str, Any], scrapes: Sequence[Scrape]) -> bool:
    """Whether the alert fires at the last scrape: a series was true for the alert's duration."""
    return bool(firing(rule, scrapes))


def firing(rule: Mapping[str, Any], scrapes: Sequence[Scrape]) -> set[Series]:
    """The series of an alert that fire at the last scrape; each has its own pending period."""
    expression = promql_parser.parse(rule["expr"])
    since: dict[Series, float] = {}
    for number, scrape in enumerate(scrapes, 1):
        holds = _evaluate(expression, scrapes[:number])
        since = {series: since.get(series, scrape.at) for series in holds}
    wait = rule.get("for")
    wait_s = promql_parser.parse_duration(wait).total_seconds() if wait else 0.0
    return {series for series, begin in since.items() if scrapes[-1].at - begin >= wait_s}


def evaluate(expression: str, scrapes: Sequence[Scrape]) -> Vector:
    """The instant vector of an expression at the last scrape."""
    return _evaluate(promql_parser.parse(expression), scrapes)


def _evaluate(node: Any, scrapes: Sequence[Scrape]) -> Vector:
    match node:
        case promql_parser.ParenExpr():
            return _evaluate(node.expr, scrapes)
        case promql_parser.VectorSelector():
            return _selected(node, scrapes[-1]) if scrapes else {}
        case promql_parser.AggregateExpr():
            return _aggregated(node, _evaluate(node.expr, scrapes))
        case promql_parser.BinaryExpr():
            return _combined(node, scrapes)
        case promql_parser.Call():
            return _called(node, scrapes)
    raise NotImplementedError(f"{type(node).__name__}: {node}")


def _selected(selector: Any, scrape: Scrape) -> Vector:
    text = str(selector)
    if text not in scrape.selected:
        matchers = selector.matchers.matchers
        scrape.selected[text] = {
            series: value
            for series, value in scrape.samples.get(selector.name, {}).items()
            if all(_matches(matcher, dict(series)) for matcher in matchers)
        }
    return scrape.selected[text]


def _matches(matcher: Any, labels: Mapping[str, str]) -> bool:
    actual = labels.get(matcher.name, "")
    match str(matcher.op):
        case "MatchOp.Equal":
            return bool(actual == matcher.value)
        case "MatchOp.NotEqual":
            return bool(actual != matcher.value)
        case "MatchOp.Re":
            return re.fullmatch(matcher.value, actual) is not None
    raise NotImplementedError(str(matcher.op))


def _aggregated(node: Any, values: Vector) -> Vector:
    kept = set(node.modifier.labels) if node.modifier is not None else set()
    if node.modifier is not None and "By" not in str(node.modifier.type):
        raise NotImplementedError(str(node))
    groups: dict[Series, list[float]] = {}
    for series, value in values.items():
        groups.setdefault(frozenset(p for p in series if p[0] in kept), []).append(value)
    reduce = _AGGREGATES[str(node.op)]
    return {series: reduce(group) for series, group in groups.items()}


def _combined(node: Any, scrapes: Sequence[Scrape]) -> Vector:
    left, symbol = _evaluate(node.lhs, scrapes), str(node.op)
    if node.modifier is not None and node.modifier.return_bool:
        raise NotImplementedError(str(node))
    if symbol in _COMPARISONS and isinstance(node.rhs, promql_parser.NumberLiteral):
        holds = _COMPARISONS[symbol]
        return {series: value for series, value in left.items() if holds(value, node.rhs.val)}
    if symbol == "-" and _is_time(node.rhs):
        return {series: value - scrapes[-1].at for series, value in left.items()}
    right = _evaluate(node.rhs, scrapes)
    match symbol:
        case "and" | "unless":
            key = _matching(node)
            there = {key(series) for series in right}
            wanted = symbol == "and"
            return {s: value for s, value in left.items() if (key(s) in there) is wanted}
        case "/" if node.modifier is None or not node.modifier.matching:
            return {s: _quotient(left[s], right[s]) for s in left if s in right}
    raise NotImplementedError(symbol)


def _matching(node: Any) -> Callable[[Series], Series]:
    """The labels by which two series match."""
    matching = node.modifier.matching if node.modifier is not None else None
    if matching is None:
        return lambda series: series
    if not str(matching.type).endswith(".Include"):
        raise NotImplementedError(str(node))
    labels = set(matching.labels)
    return lambda series: frozenset(pair for pair in series if pair[0] in labels)


def _is_time(node: Any) -> bool:
    return isinstance(node, promql_parser.Call) and node.func.name == "time"


def _quotient(left: float, right: float) -> float:
    return left / right if right else (nan if not left else inf)


def _called(node: Any, scrapes: Sequence[Scrape]) -> Vector:
    name, arguments = node.func.name, node.args
    match name:
        case "absent":
            return {} if _evaluate(arguments[0], scrapes) else {_labels(arguments[0]): 1.0}
        case "rate" | "increase":
            return _grown(arguments[0], scrapes, per_second=name == "rate")
        case "histogram_quantile":
            return _quantiles(arguments[0].val, _evaluate(arguments[1], scrapes))
    raise NotImplementedError(name)


def _labels(selector: Any) -> Series:
    """The labels of what is absent: those that the selector compares for equality."""
    matchers = selector.matchers.matchers
    return frozenset((m.name, m.value) for m in matchers if str(m.op) == "MatchOp.Equal")


def _grown(matrix: Any, scrapes: Sequence[Scrape], *, per_second: bool) -> Vector:
    """The increase of each series in the range; none for a series with a single sample."""
    begin, selector = scrapes[-1].at - matrix.range.total_seconds(), matrix.vector_selector
    points: dict[Series, list[tuple[float, float]]] = {}
    for scrape in scrapes:
        if scrape.at > begin:
            for series, value in _selected(selector, scrape).items():
                points.setdefault(series, []).append((scrape.at, value))
    grown = {}
    for series, found in points.items():
        if len(found) > 1:
            steps = pairwise(value for _, value in found)
            total = sum(new - old if new >= old else new for old, new in steps)
            grown[series] = total / (found[-1][0] - found[0][0]) if per_second else total
    return grown


def _quantiles(quantile: float, buckets: Vector) -> Vector:
    groups: dict[Series, list[tuple[float, float]]] = {}
    for series, count in buckets.items():
        bound = float(dict(series)["le"])
        rest = frozenset(pair for pair in series if pair[0] != "le")
        groups.setdefault(rest, []).append((bound, count))
    return {series: _quantile(quantile, sorted(found)) for series, found in groups.items()}


def _quantile(quantile: float, buckets: Sequence[tuple[float, float]]) -> float:
    """Linear within the bucket, as in Prometheus; the last finite bound for the last bucket."""
    total = buckets[-1][1]
    if not total:
        return nan
    rank, below, lower = quantile * total, 0.0, 0.0
    for bound, count in buckets:
        if count >= rank:
            if bound == inf:
                return lower
            return lower + (bound - lower) * (rank - below) / (count - below)
        below, lower = count, bound
    return nan
