"""A failing event handler is reported with the object's name and stops no other event."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from stowage.api.events import NodeSeen, PendingPodSeen
from stowage.api.instructions import ReportProblem
from stowage.api.status import Status
from stowage.engine import scheduling_cycle
from stowage.engine.binding.steps import status_of_step
from stowage.state.cache import ClusterCache
from tests.support.builders import make_node, make_pod
from tests.support.engines import default_engine, of_type


def test_the_report_of_a_failing_event_handler_has_only_the_name_of_the_object() -> None:
    engine = default_engine()
    pod = make_pod("p", labels={"note": "canary"})
    broken = replace(pod, spec=replace(pod.spec, containers=None))
    answer = engine.handle([PendingPodSeen(broken), NodeSeen(make_node("n"))], 0.0)
    (problem,) = of_type(ReportProblem, answer)
    assert problem.subject == "PendingPodSeen"
    assert problem.text == "TypeError(\"'NoneType' object is not iterable\") on default/p"
    assert engine.cache_counts()["nodes"] == 1


@pytest.mark.parametrize(
    ("owner", "attribute"),
    [
        (ClusterCache, "update_node"),
        (scheduling_cycle, "schedule_pod"),
    ],
    ids=["event", "scheduling"],
)
def test_without_memory_no_pod_or_event_is_blamed_and_nothing_goes_on(
    owner: Any, attribute: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was changed in part could lead to a wrong binding, so the process must end."""

    def fails(*_arguments: object, **_options: object) -> None:
        raise MemoryError

    engine = default_engine()

    def bind_a_pod() -> None:
        engine.handle([NodeSeen(make_node("n")), PendingPodSeen(make_pod("p"))], 0.0)
        engine.schedule(0.0, 1)

    monkeypatch.setattr(owner, attribute, fails)
    with pytest.raises(MemoryError):
        bind_a_pod()


def test_without_memory_no_step_of_a_binding_cycle_is_blamed() -> None:
    def fails(_state: Any, _cycle: Any) -> Status:
        raise MemoryError

    nothing: Any = None
    with pytest.raises(MemoryError):
        status_of_step(nothing, nothing, fails)
