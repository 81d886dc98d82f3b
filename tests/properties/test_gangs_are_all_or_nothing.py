"""Random lives of pod groups: no gang is bound in part, and a failed one leaves nothing behind."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from stowage.api.events import NodeGone
from tests.stories.gang_driver import GangDriver, make_group
from tests.support.builders import make_pod

NUM_GANGS, NUM_NODES = 3, 4
#: Longer than any backoff, shorter than the timeout of Permit.
SETTLE_S = 15.0

gang_sizes = st.lists(st.integers(1, 4), min_size=NUM_GANGS, max_size=NUM_GANGS)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("member"), st.integers(0, NUM_GANGS - 1), st.integers(1, 3)),
        st.tuples(st.just("node"), st.integers(0, NUM_NODES - 1), st.integers(1, 4)),
        st.tuples(st.just("ordinary"), st.integers(0, 99), st.integers(1, 2)),
        st.tuples(st.just("delete"), st.integers(0, 99), st.just(0)),
        st.tuples(st.just("drain"), st.integers(0, NUM_NODES - 1), st.just(0)),
        st.tuples(st.just("wait"), st.integers(0, 3), st.just(0)),
    ),
    max_size=30,
)


class _Life:
    """A driver whose every step is checked; pods are named by their gang and number."""

    def __init__(self, minimums: list[int]) -> None:
        self.driver = GangDriver()
        self.minimums = minimums
        self.shrunk: set[int] = set()
        self.number = 0
        for gang, minimum in enumerate(minimums):
            self.driver.show_group(make_group(f"g{gang}", minimum))

    def take(self, action: str, which: int, amount: int) -> None:
        driver = self.driver
        self.number += 1
        if action == "member":
            driver.create_members(f"g{which}-{self.number}", group=f"g{which}", cpu=str(amount))
        elif action == "node":
            driver.add_nodes(f"n{which}", cpu=str(amount))
        elif action == "ordinary":
            driver.show(make_pod(f"o-{self.number}", cpu=str(amount)))
        elif action == "delete" and driver.pods:
            self._delete(list(driver.pods)[which % len(driver.pods)])
        elif action == "drain":
            driver.handle(NodeGone(f"n{which}"))
        elif action == "wait":
            driver.run(float(which))
        driver.run()
        self.check()

    def _delete(self, name: str) -> None:
        if name.startswith("g") and self.driver.node_of(name):
            # From now on fewer than the minimum may be bound, without any fault of the scheduler.
            self.shrunk.add(int(name[1]))
        self.driver.delete(name)

    def check(self) -> None:
        """Bindings succeed at once here, so nothing stays assumed after a call."""
        assert self.driver.engine.cache_counts()["assumed_pods"] == 0
        assert self.driver.engine.in_flight() == 0
        for gang, minimum in enumerate(self.minimums):
            bound = [name for name in self.driver.bound() if name.startswith(f"g{gang}-")]
            assert not bound or len(bound) >= minimum or gang in self.shrunk


@settings(max_examples=60, deadline=None)
@given(minimums=gang_sizes, taken=steps)
def test_a_gang_is_bound_with_its_minimum_or_not_at_all(
    minimums: list[int], taken: list[tuple[str, int, int]]
) -> None:
    life = _Life(minimums)
    for action, which, amount in taken:
        life.take(action, which, amount)
    life.driver.check_replay()


@settings(max_examples=40, deadline=None)
@given(minimums=gang_sizes, taken=steps)
def test_room_for_all_lets_every_complete_gang_in(
    minimums: list[int], taken: list[tuple[str, int, int]]
) -> None:
    life = _Life(minimums)
    for action, which, amount in taken:
        life.take(action, which, amount)
    life.driver.add_nodes("roomy", cpu="1000")
    life.driver.run(SETTLE_S)
    for gang, minimum in enumerate(minimums):
        members = [name for name in life.driver.pods if name.startswith(f"g{gang}-")]
        if len(members) >= minimum:
            assert life.driver.bound(*members) == members or not members
