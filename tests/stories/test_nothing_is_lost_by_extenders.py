"""Whatever extenders say, and however late: nothing lost, bound twice or overcommitted."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from stowage.api.config.extenders import Extenders
from stowage.api.config.types import Extender
from stowage.api.events import ExtendersAnswered
from stowage.api.instructions import ConsultExtenders
from stowage.engine import Engine, replay

from tests.stories.test_nothing_is_lost import Story
from tests.support.engines import default_engine

EXTENDERS = Extenders(
    [Extender(url_prefix="http://x", filter_verb="filter", prioritize_verb="rate", weight=1)],
    max_consultations=2,
)


class ConsultedStory(Story):
    """The same happenings, with an extender that answers in any order, or fails."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.engine = default_engine(self.rng.randrange, journal=self.journal, extenders=EXTENDERS)

    def happen(self) -> None:
        super().happen()
        questions = self.cluster.questions
        while questions and self.rng.random() < 0.5:
            questions.rotate(self.rng.randrange(len(questions)))
            self.cluster.answers.append(self._answer(questions.popleft()))

    def settle(self) -> None:
        """The extender answers all it is asked, and lets all nodes pass."""
        self.cluster.failing_evictions = 0
        for _ in range(100):
            while self.cluster.questions:
                question = self.cluster.questions.popleft()
                answer = ExtendersAnswered(
                    question.pod.uid, question.number, passed=question.node_names
                )
                self.cluster.answers.append(answer)
            self.now += 11.0
            self.cluster.release_late_answers()
            self.cluster.end_terminating()
            self.cluster.deliver(self.engine, self.now)
            self.cluster.carry_out(self.engine.schedule(self.now, 50))
            self.engine.validate()
        super().settle()

    def _answer(self, question: ConsultExtenders) -> ExtendersAnswered:
        uid, number = question.pod.uid, question.number
        if self.rng.random() < 0.1:
            return ExtendersAnswered(uid, number, error="out of order")
        passed = [name for name in question.node_names if self.rng.random() < 0.6]
        failed = {name: "not today" for name in question.node_names if name not in passed}
        scores = {name: self.rng.randrange(100) for name in passed}
        return ExtendersAnswered(uid, number, tuple(passed), failed, scores=scores)


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32), steps=st.integers(1, 60))
def test_every_pod_ends_bound_once_or_known_to_fit_nowhere(seed: int, steps: int) -> None:
    story = ConsultedStory(seed)
    for _ in range(steps):
        story.happen()
    story.settle()
    assert story.engine.in_flight() == 0
    assert story.engine.dump()["consultations"] == {}
    unbound = {pod.metadata.uid for pod in story.cluster.unbound()}
    assert sum(story.engine.pending_counts().values()) == len(unbound)
    assert unbound <= story.cluster.conditions.keys()


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32), steps=st.integers(1, 40))
def test_replaying_the_journal_reaches_the_same_state(seed: int, steps: int) -> None:
    story = ConsultedStory(seed)
    for _ in range(steps):
        story.happen()
    replayed: list[Engine] = []

    def rebuild(choose: object) -> Engine:
        replayed.append(default_engine(choose, extenders=EXTENDERS))  # type: ignore[arg-type]
        return replayed[-1]

    replay(story.journal, rebuild)
    assert replayed[0].dump() == story.engine.dump()
