"""A plugin that raises or returns an invalid value fails one pod with an error that names it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any

import numpy as np
import pytest

from stowage.api.cluster_events import ActionType, ClusterEvent, EventResource, QueueingHint
from stowage.api.events import BindSucceeded, Event, PendingPodSeen
from stowage.api.instructions import (
    AttemptResult,
    BindPod,
    Instruction,
    PatchPodStatus,
    PodReference,
    ReportProblem,
    RunPreBind,
)
from stowage.api.status import SUCCESS, WAIT, Code, Status, unschedulable
from stowage.framework import EventRegistration, PluginUnusable, PreFilterResult, plugin_factory
from stowage.framework.verdict import ACCEPT_ALL, FilterVerdict, Rejection
from stowage.operator.writers.pre_binder import PreBinder
from tests.support.builders import make_pod
from tests.support.engines import default_engine, of_type
from tests.support.models.engine_driver import EngineDriver

#: Enough nodes for the scores of the class to be cached.
NUM_NODES = 40

RAISED: tuple[BaseException, ...] = (
    RuntimeError("on fire"),
    MemoryError(),
    RecursionError("too deep"),
    SystemExit(3),
    KeyboardInterrupt(),
    GeneratorExit(),
    asyncio.CancelledError(),
)
NAN = float("nan")
#: Replaced by a new coroutine in each test.
COROUTINE = object()
OTHER_POD = BindPod(PodReference("default", "good", "uid-good"), "n0")


def _mask(mask: Any, unresolvable: Any = False) -> FilterVerdict:
    return FilterVerdict((Rejection("odd", mask, unresolvable),))


def _full(value: Any, size: int = NUM_NODES, dtype: Any = np.int64) -> Any:
    return np.full(size, value, dtype=dtype)


#: Extension point -> (a valid answer, invalid answers).
ANSWERS: Mapping[str, tuple[Any, tuple[Any, ...]]] = {
    "pre_enqueue": (SUCCESS, (None, True, "no", Status(9), Status(Code.ERROR, "no"))),  # type: ignore[arg-type]
    "sort_key": ((1,), (None, NAN, "x", [1], (NAN,), (1, None), ("x",), ((1,),), (1j,), ({},))),
    "pre_filter": (
        PreFilterResult(),
        (None, SUCCESS, PreFilterResult(None), PreFilterResult(node_names=("n0",))),  # type: ignore[arg-type]
    ),
    "filter": (
        ACCEPT_ALL,
        (
            None,
            False,
            _full(True, dtype=np.bool_),
            FilterVerdict(None),  # type: ignore[arg-type]
            FilterVerdict(("odd",)),  # type: ignore[arg-type]
            _mask(None),
            _mask([True] * NUM_NODES),
            _mask(_full(1)),
            _mask(_full(True, 7, np.bool_)),
            _mask(np.ones((NUM_NODES, 1), dtype=np.bool_)),
            _mask(_full(True, dtype=np.bool_), _full(True, 7, np.bool_)),
            _mask(_full(True, dtype=np.bool_), "yes"),
        ),
    ),
    "pre_score": (SUCCESS, (None, 0, WAIT)),
    "score": (
        _full(1),
        (
            None,
            1,
            [1] * NUM_NODES,
            _full(1, 7),
            _full(1, NUM_NODES + 1),
            np.ones((1, NUM_NODES), dtype=np.int64),
            _full(1.0, dtype=np.float64),
            _full(NAN, dtype=np.float64),
            _full(1, dtype=np.int32),
            _full(1, dtype=np.object_),
            _full(101),
            _full(-1),
            _full(2**63 - 1),
        ),
    ),
    "normalize_score": (
        _full(1),
        (None, NAN, _full(1, 7), _full(1.5, dtype=np.float64), _full(101)),
    ),
    "reserve": (SUCCESS, (True, WAIT, "reserved")),
    "permit": (
        (SUCCESS, 0.0),
        (
            None,
            SUCCESS,
            (SUCCESS,),
            (None, 1.0),
            (WAIT, NAN),
            (WAIT, -1.0),
            (WAIT, "1s"),
            (WAIT, None),
        ),
    ),
    "pre_bind_pre_flight": (SUCCESS, (None, True, WAIT)),
    "pre_bind": (SUCCESS, (None, 0, WAIT, "bound")),
    "bind": (None, (SUCCESS, "n0", OTHER_POD)),
}
#: Extension points where a failure does not end the attempt -> a valid answer.
OTHER_VALID_ANSWERS: Mapping[str, Any] = {
    "post_filter": (unschedulable(), None),
    "post_bind": None,
    "unreserve": None,
    "hint": QueueingHint.SKIP,
}
CASES = [
    pytest.param(point, wrong, id=f"{point}-{index}-{type(wrong).__name__}")
    for point, (_, answers) in ANSWERS.items()
    for index, wrong in enumerate((*answers, *RAISED, COROUTINE))
]


def _valid_answer(point: str) -> Any:
    return ANSWERS[point][0] if point in ANSWERS else OTHER_VALID_ANSWERS[point]


async def _unawaited() -> Status:
    return SUCCESS


class Misbehaving:
    """A plugin of one extension point that gives an invalid answer for the pod named bad."""

    name = "Misbehaving"

    def __init__(self, point: str, wrong: Any) -> None:
        self.wrong = wrong
        self.is_fixed = False
        for each in (point, *_COMPANIONS.get(point, ())):
            answer = (
                self._async_method(each) if each == "pre_bind" else self._sync_method(each, point)
            )
            setattr(self, each, answer)

    def answer(self, point: str, pod: Any) -> Any:
        if pod.name != "bad" or self.is_fixed:
            return _valid_answer(point)
        if isinstance(self.wrong, BaseException):
            raise self.wrong
        return _unawaited() if self.wrong is COROUTINE else self.wrong

    def _sync_method(self, each: str, point: str) -> Callable[..., Any]:
        def ask(*args: Any) -> Any:
            pod = args[0] if each in ("pre_enqueue", "sort_key") else args[1]
            return self.answer(each, pod) if each == point else _valid_answer(each)

        return ask

    def _async_method(self, point: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        async def ask(*args: Any) -> Any:
            await asyncio.sleep(0)
            return self.answer(point, args[1])

        return ask


_COMPANIONS = {"normalize_score": ("score",), "pre_bind_pre_flight": ("pre_bind",)}


def _profile(plugin: Any) -> dict[str, Any]:
    points: dict[str, Any] = {"multiPoint": {"enabled": [{"name": plugin.name}]}}
    if hasattr(plugin, "sort_key"):
        points = {
            "queueSort": {
                "enabled": [{"name": "Misbehaving"}],
                "disabled": [{"name": "PrioritySort"}],
            }
        }
    if hasattr(plugin, "bind"):
        points["bind"] = {
            "enabled": [{"name": "Misbehaving"}, {"name": "DefaultBinder"}],
            "disabled": [{"name": "DefaultBinder"}],
        }
    return {"schedulerName": "default-scheduler", "plugins": points}


class MisbehavingDriver(EngineDriver):
    """An engine with one misbehaving plugin, which schedules after every event."""

    def __init__(self, plugin: Any) -> None:
        super().__init__(partial(default_engine, profile=_profile(plugin), plugins=[plugin]))
        self.add_nodes(*(f"n{index}" for index in range(NUM_NODES)))

    def handle(self, *events: Event) -> list[Instruction]:
        return [*super().handle(*events), *self.schedule()]

    async def pre_bind(self) -> None:
        """Run the requested PreBind work and report its outcome."""
        binder = PreBinder(self.engine.pre_bind, 10.0)
        for instruction in self.take(RunPreBind):
            outcome = await binder.run(instruction)
            if outcome is not None:
                self.handle(outcome)

    def bound(self) -> list[str]:
        """Names of the pods that the engine has asked to bind."""
        return [each.pod.name for each in of_type(BindPod, self.instructions)]

    def messages(self) -> dict[str, str]:
        """The last message written to each pod's condition."""
        patches = of_type(PatchPodStatus, self.instructions)
        return {each.pod.name: each.message for each in patches}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("point", "wrong"), CASES)
async def test_an_invalid_answer_of_a_plugin_fails_only_that_pod(point: str, wrong: Any) -> None:
    plugin = Misbehaving(point, wrong)
    driver = MisbehavingDriver(plugin)
    pods = [make_pod(name, labels={"name": name}) for name in ("bad", "good")]
    driver.handle(*map(PendingPodSeen, pods))
    await driver.pre_bind()
    assert driver.bound() == ["good"]
    assert driver.engine.pending_counts()["active"] == 0
    assert sum(driver.engine.pending_counts().values()) == 1
    assert driver.engine.in_flight() == 1
    if point != "pre_enqueue":
        assert "Misbehaving" in driver.messages()["bad"]
        results = {
            each.pod.name: each.result for each in of_type(AttemptResult, driver.instructions)
        }
        assert results["good"] == "scheduled"


@pytest.mark.parametrize("point", [point for point in ANSWERS if point != "pre_enqueue"])
async def test_a_pod_is_bound_once_the_plugin_no_longer_fails(point: str) -> None:
    plugin = Misbehaving(point, SystemExit())
    driver = MisbehavingDriver(plugin)
    driver.create_pods("bad")
    await driver.pre_bind()
    plugin.is_fixed = True
    driver.instructions.clear()
    driver.advance(60.0)
    await driver.pre_bind()
    assert driver.bound() == ["bad"]


@pytest.mark.parametrize(
    "wrong", [*RAISED, None, "coroutine", (SUCCESS,), (None, None), (SUCCESS, 1)]
)
def test_an_error_of_post_filter_is_added_to_the_diagnosis(wrong: Any) -> None:
    plugin = Misbehaving("post_filter", wrong)
    driver = MisbehavingDriver(plugin)
    driver.handle(PendingPodSeen(make_pod("bad", cpu="64")), PendingPodSeen(make_pod("good")))
    assert driver.bound() == ["good"]
    message = driver.messages()["bad"]
    assert message.startswith("0/40 nodes are available: 40 Insufficient cpu.")
    assert 'running PostFilter plugin "Misbehaving": ' in message


@pytest.mark.parametrize("wrong", [*RAISED, COROUTINE])
def test_a_failing_post_bind_plugin_is_reported_and_changes_nothing(wrong: Any) -> None:
    driver = MisbehavingDriver(Misbehaving("post_bind", wrong))
    driver.create_pods("bad")
    (bind,) = of_type(BindPod, driver.instructions)
    driver.handle(BindSucceeded("uid-bad", bind.node_name))
    assert 'PostBind plugin "Misbehaving"' in of_type(ReportProblem, driver.instructions)[0].text
    assert driver.engine.in_flight() == 0


@pytest.mark.parametrize("wrong", [*RAISED, COROUTINE])
def test_a_failing_unreserve_plugin_is_reported_and_the_pod_is_forgotten(wrong: Any) -> None:
    plugin = Misbehaving("unreserve", wrong)
    plugin.permit = lambda *_args: (unschedulable("no"), 0.0)  # type: ignore[attr-defined]
    driver = MisbehavingDriver(plugin)
    driver.create_pods("bad")
    assert 'Unreserve plugin "Misbehaving"' in of_type(ReportProblem, driver.instructions)[0].text
    assert driver.engine.cache_counts()["assumed_pods"] == 0
    assert sum(driver.engine.pending_counts().values()) == 1


@pytest.mark.parametrize("wrong", [*RAISED, COROUTINE, None, "QUEUE", 1])
def test_a_pod_is_retried_if_its_hint_fails(wrong: Any) -> None:
    hint = Misbehaving("hint", wrong)

    class Refuses:
        name = "Refuses"

        def pre_filter(self, *_args: Any) -> PreFilterResult:
            return PreFilterResult(unschedulable("no"))

        def events_to_register(self) -> list[EventRegistration]:
            event = ClusterEvent(EventResource.NODE, ActionType.ADD)
            return [EventRegistration(event, lambda pod, _old, _new: hint.answer("hint", pod))]

    driver = MisbehavingDriver(Refuses())
    driver.create_pods("bad")
    assert driver.engine.pending_counts()["unschedulable"] == 1
    driver.advance(60.0)
    driver.add_nodes("new")
    assert len(of_type(AttemptResult, driver.instructions)) == 2


@pytest.mark.parametrize("wrong", [*RAISED, None, 7, ["event"], [EventRegistration("Node/Add")]])  # type: ignore[arg-type]
def test_events_that_cannot_be_registered_make_the_plugin_unusable(wrong: Any) -> None:
    class Registers:
        name = "Registers"

        def pre_filter(self, *_args: Any) -> PreFilterResult:
            return PreFilterResult()

        def events_to_register(self) -> Any:
            if isinstance(wrong, BaseException):
                raise wrong
            return wrong

    with pytest.raises(PluginUnusable, match="its events_to_register failed with"):
        plugin_factory(Registers, name="Registers").construct(None)


def test_sort_keys_are_numbers_or_tuples_of_numbers_of_any_length() -> None:
    keys = {"a": (3, 1), "b": 2.5, "c": np.int64(3), "d": (), "e": (10**400,), "f": np.float32(1)}

    class Mixed:
        name = "Misbehaving"

        def sort_key(self, pod: Any, _queued_at: float) -> Any:
            return keys[pod.name]

    driver = MisbehavingDriver(Mixed())
    driver.create_pods(*keys)
    assert driver.bound() == ["d", "f", "b", "c", "a", "e"]


def test_a_resource_in_another_notation_makes_the_plugin_unusable() -> None:
    class Registers:
        name = "Registers"

        def pre_filter(self, *_args: Any) -> PreFilterResult:
            return PreFilterResult()

        def events_to_register(self) -> list[EventRegistration]:
            return [EventRegistration(ClusterEvent("example.com/v1/foos", ActionType.ADD))]

    with pytest.raises(PluginUnusable, match="expected a member of EventResource"):
        plugin_factory(Registers, name="Registers").construct(None)
