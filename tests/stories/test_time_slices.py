"""A call of the engine ends early without changing what a replay does."""

from __future__ import annotations

from collections.abc import Iterator

from stowage.api.events import Event, NodeSeen, PendingPodSeen
from stowage.api.instructions import BindPod
from stowage.engine import replay
from stowage.engine.journal import HandleCall, Journal, ScheduleCall
from tests.support.builders import make_node, make_pod
from tests.support.engines import default_engine, of_type


def test_no_pod_is_attempted_after_the_time_is_over_and_a_replay_attempts_as_many() -> None:
    journal = Journal()
    engine = default_engine(journal=journal)
    pods = [PendingPodSeen(make_pod(f"p{number}")) for number in range(5)]
    engine.handle([NodeSeen(make_node("n")), *pods], 0.0)
    answers = iter([False, True])
    assert len(of_type(BindPod, engine.schedule(0.0, 4, lambda: next(answers)))) == 2
    assert len(of_type(BindPod, engine.schedule(0.0, 4))) == 3
    calls = [each for each in journal.entries if isinstance(each, ScheduleCall)]
    assert [call.budget for call in calls] == [2, 4]
    replay(journal, default_engine)


def test_an_event_is_taken_when_the_one_before_has_been_handled() -> None:
    journal = Journal()
    engine = default_engine(journal=journal)
    counts = []

    def arriving() -> Iterator[Event]:
        for name in ("a", "b"):
            yield NodeSeen(make_node(name))
            counts.append(engine.cache_counts()["nodes"])

    engine.handle(arriving(), 0.0)
    assert counts == [1, 2]
    (call,) = journal.entries
    assert isinstance(call, HandleCall)
    assert [event.node.metadata.name for event in call.events] == ["a", "b"]  # type: ignore[union-attr]
