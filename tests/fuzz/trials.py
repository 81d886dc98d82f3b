"""Checks for any input: it is accepted, or rejected with a useful message."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from stowage.api.decoding.decode import KINDS, decode_object
from stowage.api.decoding.errors import InvalidObject, QuantityError, SelectorError
from stowage.api.events import BindFailed, Event, PendingPodSeen
from stowage.api.instructions import BindPod, EmitEvent, PatchPodStatus, ReportProblem
from stowage.api.objects.pod import Pod
from stowage.api.reflected_kinds import REFLECTED_KINDS
from stowage.api.values.quantity import INT64_MAX, parse_quantity
from stowage.api.values.selector_syntax import parse_field_selector, parse_label_selector
from stowage.engine import Engine
from stowage.operator.watch.invalid_objects import invalid_object_event
from tests.support.builders import make_node, make_pod
from tests.support.engines import default_engine, of_type

MAX_MESSAGE = 2_000
"""Longest message about one object: it becomes a log line and the note of an Event."""

_TOO_MUCH = 10**28

_PLAIN = re.compile(
    r"([+-]?)([0-9]+(?:\.[0-9]*)?|\.[0-9]+)([numkMGTPE]?|[KMGTPE]i|[eE][+-]?[0-9]{1,3})"
)
_EXPONENT = re.compile(r"[eE]([+-]?[0-9]+)")
_POWERS = {**{s: Fraction(10) ** e for e, s in zip(range(-9, 19, 3), "num kMGTPE", strict=True)}}
_BINARY = {f"{s}i": Fraction(1024) ** e for e, s in enumerate("KMGTPE", 1)}
_SEEN: dict[str, Callable[[Any], Event]] = {each.kind: each.seen for each in REFLECTED_KINDS}


def try_quantity(text: str) -> bool:
    """Whether the quantity is accepted; its value is computed again with fractions."""
    plain = _PLAIN.fullmatch(text)
    try:
        quantity = parse_quantity(text)
    except QuantityError as error:
        return _is_refused(error, plain is None or len(text) > 4_000)
    if plain is not None:
        assert _clipped(quantity.nano_value()) == _clipped(_nano(*plain.groups())), text
    assert -(2**63) <= quantity.value() < 2**63
    assert -(2**63) <= quantity.milli_value() < 2**63
    written = quantity.canonical()
    # Upstream has no suffix for larger values, and prints none.
    if abs(quantity.nano_value()) < _TOO_MUCH:
        assert parse_quantity(written).nano_value() == quantity.nano_value(), text
    return True


def _nano(sign: str, number: str, suffix: str) -> int:
    """Nano units, rounded away from zero; a binary quantity has at most 2**63-1 units."""
    written = _EXPONENT.fullmatch(suffix)
    if written is not None:
        power = Fraction(10) ** int(written[1])
    else:
        power = _BINARY.get(suffix) or _POWERS[suffix or " "]
    amount = Fraction(number) * power * 10**9
    nano = -(-amount.numerator // amount.denominator)
    if suffix in _BINARY:
        nano = min(nano, INT64_MAX * 10**9)
    return -nano if sign == "-" else nano


def _clipped(nano: int) -> int:
    """Clipped to an int64 of whole units."""
    return max(-_TOO_MUCH, min(_TOO_MUCH, nano))


def _is_refused(error: Exception, is_rightly: bool = True) -> bool:
    """Return False for a rejected input; the message goes to a log line and an Event."""
    assert is_rightly, error
    # Users send selectors in requests of limited size, and get them quoted.
    assert len(str(error)) <= MAX_MESSAGE or isinstance(error, SelectorError), str(error)[:200]
    assert str(error)
    return False


def try_label_selector(text: str) -> bool:
    """Whether the selector is accepted; then its text has the same meaning."""
    try:
        selector = parse_label_selector(text)
    except SelectorError as error:
        return _is_refused(error)
    selector.matches({"app": "web", "tier": "9"})
    assert parse_label_selector(str(selector)) == selector
    return True


def try_field_selector(text: str) -> bool:
    """Whether the selector is accepted."""
    try:
        selector = parse_field_selector(text)
    except SelectorError as error:
        return _is_refused(error)
    selector.matches({"spec.nodeName": "n"})
    return True


class EngineTrial:
    """An engine that gets every object that decodes, between valid pods."""

    def __init__(self) -> None:
        self._now = 0.0
        self._num_sane = 0
        self._engine = self._fresh()

    def try_object(self, kind: str, data: bytes) -> bool:
        """Whether the object decodes; the engine goes on and names what it cannot use."""
        event, is_accepted = _event_of(kind, data)
        self._now += 1.0
        instructions = [
            *self._engine.handle([event], self._now),
            *self._engine.schedule(self._now, 5),
        ]
        for problem in of_type(ReportProblem, instructions):
            is_hint = "the queueing hint of plugin" in problem.text
            assert problem.subject.partition(" ")[0] in KINDS or is_hint, problem
            assert not problem.text.startswith(("scheduling cycle", "binding cycle")), problem
            assert len(problem.text) <= MAX_MESSAGE, problem.text[:200]
        for report in (*of_type(EmitEvent, instructions), *of_type(PatchPodStatus, instructions)):
            assert len(getattr(report, "note", "") or getattr(report, "message", "")) <= 20_000
        # Fail the binding, so that a pod that found a node goes back to the queue.
        failed = [
            BindFailed(each.pod.uid, each.node_name, "no")
            for each in of_type(BindPod, instructions)
        ]
        self._engine.handle(failed, self._now)
        return is_accepted

    def check(self) -> None:
        """Check all invariants and that a valid pod finds its node; then start a new engine."""
        self._engine.validate()
        name = f"sane-{self._num_sane}"
        self._num_sane += 1
        # Random pods may have a higher priority and may have filled the nodes: add a node.
        own = make_node(name, cpu="1", labels={"sane": name})
        pod = make_pod(name, cpu="1", node_selector={"sane": name}, priority=2**31 - 1)
        events: list[Event] = [_SEEN["Node"](own), PendingPodSeen(pod)]
        instructions = self._engine.handle(events, self._now) + self._engine.schedule(
            self._now, 10_000
        )
        assert name in [each.pod.name for each in of_type(BindPod, instructions)]
        self._engine.validate()
        self._engine = self._fresh()

    def _fresh(self) -> Engine:
        engine = default_engine()
        nodes = [make_node(f"n{index}", zone="ab"[index % 2]) for index in range(4)]
        engine.handle([_SEEN["Node"](node) for node in nodes], self._now)
        return engine


def _event_of(kind: str, data: bytes) -> tuple[Event, bool]:
    try:
        found: Any = decode_object(KINDS[kind], data)
    except InvalidObject as invalid:
        _is_refused(invalid, bool(invalid.field and invalid.expectation))
        return invalid_object_event(invalid), False
    if isinstance(found, Pod) and not found.spec.node_name:
        return PendingPodSeen(found), True
    return _SEEN[kind](found), True
