"""Wrong answers of out-of-tree plugins are refused in words that say what was expected."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stowage.api.cluster_events import QueueingHint
from stowage.api.instructions import BindPod
from stowage.api.status import SUCCESS, Code, Status
from stowage.framework import FilterVerdict, PreFilterResult, Rejection
from stowage.framework.authoring.checked_answers import (
    InterruptionRaisedError,
    checked,
    checked_registrations,
)
from stowage.framework.extension_points import EventRegistration, ReservePlan
from stowage.state import ClusterCache, make_pod_info
from tests.support.builders import make_pod
from tests.unit.queue.scenario import NODE_ADD, POD_DELETE

POD = make_pod_info(make_pod("p"), ClusterCache().classes)
OTHER = make_pod_info(make_pod("other"), ClusterCache().classes)
NODES = range(2)
#: The arguments of the members; a view of nodes is asked for its length only.
ARGS: dict[str, tuple[Any, ...]] = {"filter": (None, POD, NODES), "bind": (None, POD, "n0")}


async def _later() -> None:
    """A coroutine where a value is expected."""


def _ask(member: str, answer: Any) -> Any:
    return checked(member, lambda *_args: answer)(*ARGS.get(member, (None, POD, "n0")))


_MASK = np.zeros(2, dtype=np.bool_)
_SHORT = np.zeros(1, dtype=np.bool_)
_STATUS = "expected a Code and a tuple of texts in it"
#: A value of another type than every member answers.
_ODD: Any = 3


@pytest.mark.parametrize(
    ("member", "answer", "message"),
    [
        ("pre_enqueue", 3, "answered 3, expected Status"),
        ("pre_enqueue", Status(Code.UNSCHEDULABLE, ("full", 3)), _STATUS),  # type: ignore[arg-type]
        ("pre_enqueue", Status(Code.UNSCHEDULABLE, ["full"]), _STATUS),  # type: ignore[arg-type]
        ("pre_enqueue", Status(Code.UNSCHEDULABLE, ("full",), _ODD), _STATUS),
        ("pre_enqueue", "x" * 99, f"answered '{'x' * 79}[.]{{3}}, expected Status"),
        ("pre_filter", 3, "answered 3, expected PreFilterResult"),
        ("pre_filter", PreFilterResult(_ODD), "answered 3, expected Status"),
        (
            "pre_filter",
            PreFilterResult(node_names=["n0"]),  # type: ignore[arg-type]
            r"answered \['n0'\], expected frozenset or set",
        ),
        ("pre_filter", PreFilterResult(node_names=frozenset([7])), "answered 7, expected str"),  # type: ignore[list-item]
        ("filter", 3, "answered 3, expected FilterVerdict"),
        ("filter", FilterVerdict(_ODD), "answered 3, expected tuple"),
        ("filter", FilterVerdict((_ODD,)), "answered 3, expected Rejection"),
        ("filter", FilterVerdict((Rejection(_ODD, _MASK),)), "answered 3, expected str"),
        ("filter", FilterVerdict((Rejection("full", _ODD),)), r"mask of 'full': 3, expected bool"),
        ("filter", FilterVerdict((Rejection("full", _SHORT),)), "mask of 'full': bool"),
        ("filter", FilterVerdict((Rejection("full", _MASK, _SHORT),)), "unresolvable of 'full': b"),
        ("post_filter", 3, "answered 3, expected two values"),
        ("post_filter", (3, "n0"), "answered 3, expected Status"),
        ("post_filter", (SUCCESS, 3), "answered 3, expected str or NoneType"),
        ("pre_score", 3, "answered 3, expected Status"),
        ("score", 3, r"scores: 3, expected int64\(2,\)"),
        ("score", np.zeros(2), r"scores: float64\(2,\), expected int64\(2,\)"),
        ("normalize_score", 3, r"scores: 3, expected int64\(2,\)"),
        ("pre_bind_pre_flight", 3, "answered 3, expected Status"),
        ("reserve", 3, "answered 3, expected Status"),
        ("reserve", ReservePlan(annotations=_ODD), "answered 3, expected dict"),
        ("reserve", ReservePlan(volumes=("v",)), "answered 'v', expected PersistentVolume$"),  # type: ignore[arg-type]
        ("reserve", ReservePlan(claims=("c",)), "answered 'c', expected PersistentVolumeClaim$"),  # type: ignore[arg-type]
        ("reserve", ReservePlan(annotations={3: "a"}), "answered 3, expected str"),  # type: ignore[dict-item]
        (
            "reserve",
            ReservePlan(annotations={"reserved.stowage/a": 3}),  # type: ignore[dict-item]
            "answered 3, expected str",
        ),
        ("reserve", ReservePlan(annotations={"a": "b"}), "annotation 'a', expected reserved.stow"),
        ("permit", (SUCCESS, 1.0, 2.0), "expected two values"),
        ("permit", (3, 1.0), "answered 3, expected Status"),
        ("permit", (SUCCESS, True), "answered True, expected seconds, 0 or more"),
        ("permit", (SUCCESS, "1"), "answered '1', expected seconds, 0 or more"),
        ("permit", (SUCCESS, -1.0), "answered -1.0, expected seconds, 0 or more"),
        ("bind", 3, "answered 3, expected BindPod"),
        ("bind", BindPod(POD.reference, "n1"), "expected default/p on n0"),
        ("bind", BindPod(OTHER.reference, "n0"), "expected default/p on n0"),
    ],
)
def test_a_wrong_answer_is_named_with_what_was_expected(
    member: str, answer: Any, message: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        _ask(member, answer)


@pytest.mark.parametrize("member", ["pre_enqueue", "filter", "permit", "unreserve"])
def test_a_coroutine_is_no_answer(member: str) -> None:
    with pytest.raises(TypeError, match="answered a coroutine, expected a value"):
        checked(member, lambda *_args: _later())(None, POD, NODES)


@pytest.mark.parametrize(
    ("member", "answer"),
    [
        ("pre_filter", PreFilterResult(node_names=frozenset({"n0"}))),
        ("filter", FilterVerdict((Rejection("full", _MASK, _MASK),))),
        ("reserve", None),
        ("reserve", ReservePlan(annotations={"reserved.stowage/slots": "0,1"})),
        ("permit", (SUCCESS, 0)),
        ("bind", None),
        ("bind", BindPod(POD.reference, "n0")),
    ],
)
def test_a_right_answer_passes_unchanged(member: str, answer: Any) -> None:
    assert _ask(member, answer) is answer


def test_a_registered_event_keeps_having_no_hint() -> None:
    def hint(_pod: Any, _old: Any, _new: Any) -> QueueingHint:
        return QueueingHint.SKIP

    plain, hinted = checked_registrations(
        lambda: [EventRegistration(NODE_ADD), EventRegistration(POD_DELETE, hint)]
    )
    assert plain == EventRegistration(NODE_ADD)
    assert hinted.event == POD_DELETE
    assert hinted.hint is not None
    assert hinted.hint(POD, None, None) is QueueingHint.SKIP


def test_the_answer_of_a_registered_hint_is_checked() -> None:
    registration = EventRegistration(NODE_ADD, lambda _pod, _old, _new: True)  # type: ignore[arg-type, return-value]
    (checked_one,) = checked_registrations(lambda: [registration])
    assert checked_one.hint is not None
    with pytest.raises(TypeError, match="answered True, expected QueueingHint"):
        checked_one.hint(POD, None, None)


@pytest.mark.parametrize(
    ("interruption", "text"),
    [
        (SystemExit("enough"), r"^it raised SystemExit\(enough\)$"),
        (KeyboardInterrupt("stop"), r"^it raised KeyboardInterrupt\(stop\)$"),
    ],
    ids=repr,
)
def test_a_plugin_that_would_end_the_process_is_an_error_that_names_what_it_raised(
    interruption: BaseException, text: str
) -> None:
    def ends(*_args: Any) -> None:
        raise interruption

    with pytest.raises(InterruptionRaisedError, match=text):
        checked("reserve", ends)(None, POD, "n0")
