"""A failing event handler is reported with the object's name and stops no other event."""

from __future__ import annotations

from msgspec.structs import replace

from stowage.api.events import NodeSeen, PendingPodSeen
from stowage.api.instructions import ReportProblem
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
