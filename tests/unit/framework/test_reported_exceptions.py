"""Exceptions of out-of-tree plugins are reported with the plugin and the extension point."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, NoReturn

import pytest

from stowage.api.cluster_events import ActionType, ClusterEvent, EventResource
from stowage.framework import Handle, plugin_factory
from stowage.framework.extension_points import EventRegistration

Report = tuple[str, str, Exception]


class BrokenPluginError(RuntimeError):
    pass


def _raise(*_args: Any) -> NoReturn:
    raise BrokenPluginError


class Raising:
    """Every method raises."""

    name = "Raising"

    pre_enqueue = pre_filter = filter = post_filter = pre_score = score = normalize_score = _raise
    reserve = unreserve = permit = pre_bind_pre_flight = bind = post_bind = sort_key = _raise

    async def pre_bind(self, *_args: Any) -> NoReturn:
        raise BrokenPluginError

    def events_to_register(self) -> Sequence[EventRegistration]:
        return [EventRegistration(ClusterEvent(EventResource.NODE, ActionType.ADD), _raise)]


async def _call(method: Any, *args: Any) -> None:
    answer = method(*args)
    if inspect.iscoroutine(answer):
        await answer


@pytest.mark.parametrize(
    ("member", "point"),
    [
        ("pre_enqueue", "PreEnqueue"),
        ("pre_filter", "PreFilter"),
        ("filter", "Filter"),
        ("post_filter", "PostFilter"),
        ("pre_score", "PreScore"),
        ("score", "Score"),
        ("normalize_score", "NormalizeScore"),
        ("reserve", "Reserve"),
        ("unreserve", "Unreserve"),
        ("permit", "Permit"),
        ("pre_bind_pre_flight", "PreBindPreFlight"),
        ("pre_bind", "PreBind"),
        ("bind", "Bind"),
        ("post_bind", "PostBind"),
    ],
)
async def test_an_exception_is_reported_and_raised_on(member: str, point: str) -> None:
    plugin, reports = _made(Raising)
    with pytest.raises(BrokenPluginError) as raised:
        await _call(getattr(plugin, member), None, None, None)
    assert reports == [("Raising", point, raised.value)]


def test_an_exception_of_a_hint_is_reported() -> None:
    plugin, reports = _made(Raising)
    (registration,) = plugin.events_to_register()
    with pytest.raises(BrokenPluginError):
        registration.hint(None, None, None)
    assert [report[:2] for report in reports] == [("Raising", "QueueingHint")]


def test_an_exception_of_a_sort_key_is_reported_in_the_cycle_of_the_pod() -> None:
    plugin, reports = _made(Raising)
    assert isinstance(plugin.unsortable(None), BrokenPluginError)
    assert [report[:2] for report in reports] == [("Raising", "QueueSort")]


def test_an_answer_of_the_wrong_type_is_reported() -> None:
    class Wrong:
        name = "Wrong"

        def pre_enqueue(self, _pod: Any) -> int:
            return 5

    plugin, reports = _made(Wrong)
    with pytest.raises(TypeError):
        plugin.pre_enqueue(None)
    assert [report[:2] for report in reports] == [("Wrong", "PreEnqueue")]


def _made(made_by: type) -> tuple[Any, list[Report]]:
    handle, reports = Handle(), list[Report]()
    factory = plugin_factory(made_by, handle=handle)
    plugin = factory.construct(factory.args())
    handle.report_exceptions_to(lambda *report: reports.append(report))
    return plugin, reports
