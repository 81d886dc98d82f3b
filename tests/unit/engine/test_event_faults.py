"""An event whose handler fails is told by its object's name, and stops no other."""

from __future__ import annotations

from typing import Any

import pytest
from stowage.api.events import NodeSeen, PendingPodSeen
from stowage.api.instructions import ReportProblem
from stowage.engine import engine as module

from tests.support.builders import make_node, make_pod
from tests.support.engines import default_engine, of_type


def _fail(*_args: Any) -> None:
    raise RuntimeError("the disk is on fire")


def test_a_fault_of_ours_names_the_object_and_shows_nothing_else_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = default_engine()
    handlers: dict[Any, Any] = module._HANDLERS  # type: ignore[assignment]
    monkeypatch.setitem(handlers, PendingPodSeen, _fail)
    pod = make_pod("p", labels={"note": "canary"})
    answer = engine.handle([PendingPodSeen(pod), NodeSeen(make_node("n"))], 0.0)
    (problem,) = of_type(ReportProblem, answer)
    assert problem.subject == "PendingPodSeen"
    assert problem.text == "RuntimeError('the disk is on fire') on default/p"
    assert engine.cache_counts()["nodes"] == 1
