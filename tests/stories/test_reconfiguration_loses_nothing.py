"""Configurations that change at any moment: no pod lost, bound twice or forgotten."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from stowage.engine import Engine, replay

from tests.stories.test_nothing_is_lost import Story
from tests.support.configurable_engine import change_to, configurable_engine, fit_profile

SPREADING = fit_profile("LeastAllocated")
PACKING = fit_profile("MostAllocated")
ANYWHERE = {
    "schedulerName": "default-scheduler",
    "plugins": {"score": {"disabled": [{"name": "*"}]}},
}
CHANGES = (
    change_to(SPREADING),
    change_to(PACKING, podInitialBackoffSeconds=3, podMaxBackoffSeconds=5),
    change_to(ANYWHERE),
    change_to(PACKING, fit_profile(scheduler_name="batch"), podMaxBackoffSeconds=20),
    change_to({**PACKING, "pluginConfig": [{"name": "Nobody"}]}),
)


class ChangingStory(Story):
    """The same random happenings, and now and then another configuration, sound or not."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.engine = configurable_engine(
            SPREADING, choose=self.rng.randrange, journal=self.journal
        )

    def happen(self) -> None:
        """One random thing, one in four an edit."""
        if self.rng.randrange(4):
            super().happen()
            return
        change = self.rng.choice(CHANGES)
        self.cluster.carry_out(self.engine.handle([change], self.now))
        self.engine.validate()
        self.cluster.check()


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), steps=st.integers(1, 60))
def test_every_pod_ends_bound_once_or_known_to_fit_nowhere(seed: int, steps: int) -> None:
    story = ChangingStory(seed)
    for _ in range(steps):
        story.happen()
    story.settle()
    unbound = {pod.metadata.uid for pod in story.cluster.unbound()}
    assert sum(story.engine.pending_counts().values()) == len(unbound)
    assert unbound <= story.cluster.conditions.keys()
    assert story.engine.in_flight() == 0


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32), steps=st.integers(1, 40))
def test_replaying_the_journal_reaches_the_same_state(seed: int, steps: int) -> None:
    story = ChangingStory(seed)
    for _ in range(steps):
        story.happen()
    replayed: list[Engine] = []

    def rebuild(choose: Any) -> Engine:
        replayed.append(configurable_engine(SPREADING, choose=choose))
        return replayed[-1]

    replay(story.journal, rebuild)
    assert replayed[0].dump() == story.engine.dump()
