"""AgedPrioritySort orders as its scalar twin, and no pod starves behind higher priorities."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from fractions import Fraction

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from stowage.api.objects.pod import Pod
from stowage.api.status import SUCCESS
from stowage.plugins.aged_priority_sort import AgedPrioritySort, AgedPrioritySortArgs
from stowage.queue import QueueRules, SchedulingQueue
from stowage.state.pods.pod_info import PodClasses, make_pod_info
from tests.support.builders import make_pod
from tests.support.scalar.aged_priority_sort import goes_before

START = datetime(2026, 1, 1, tzinfo=UTC)
RFC_3339 = "%Y-%m-%dT%H:%M:%SZ"
CLASSES = PodClasses()
MILLISECONDS = st.integers(0, 5_000_000)
PRIORITIES = st.one_of(st.integers(-20, 20), st.integers(-(2**31), 2**31 - 1))


def _pod(name: str, priority: int, created_s: int | None) -> Pod:
    pod = make_pod(name, priority=priority)
    moment = None if created_s is None else START + timedelta(seconds=created_s)
    text = None if moment is None else moment.strftime(RFC_3339)
    metadata = msgspec.structs.replace(pod.metadata, creation_timestamp=text)
    return msgspec.structs.replace(pod, metadata=metadata)


def _plugin(milliseconds: int) -> AgedPrioritySort:
    return AgedPrioritySort(AgedPrioritySortArgs(milliseconds / 1000))


PODS = st.builds(
    _pod, st.just("p"), PRIORITIES, st.one_of(st.none(), st.integers(0, 100), st.integers(0, 10**9))
)


@given(MILLISECONDS, PODS, PODS, st.floats(0, 1e9), st.floats(0, 1e9))
def test_the_order_equals_the_twin(
    milliseconds: int, first: Pod, second: Pod, first_at: float, second_at: float
) -> None:
    seconds, plugin = Fraction(milliseconds, 1000), _plugin(milliseconds)
    first_key = plugin.sort_key(make_pod_info(first, CLASSES), first_at)
    second_key = plugin.sort_key(make_pod_info(second, CLASSES), second_at)
    before, after = goes_before(first, second, seconds), goes_before(second, first, seconds)
    if before or after:
        assert (first_key < second_key, second_key < first_key) == (before, after)
    else:
        assert (first_key < second_key) == (first_at < second_at)


@given(
    st.integers(1, 5000),
    st.integers(1, 20),
    st.lists(st.integers(1, 20), min_size=1, max_size=60),
)
def test_a_pod_of_low_priority_is_popped_before_pods_that_come_too_late(
    milliseconds: int, lead: int, priorities: list[int]
) -> None:
    """A pod of a higher priority arrives each second and takes the only turn of that second."""
    plugin = _plugin(milliseconds)
    queue = SchedulingQueue(QueueRules(plugin.sort_key, lambda _: SUCCESS, {}))
    queue.add(make_pod_info(_pod("low", 0, 0), CLASSES), 0.0)
    latest = lead * milliseconds / 1000
    popped: list[str] = []
    last = int(latest) + 1
    for second in range(last + 1):
        priority = min(priorities[second % len(priorities)], lead)
        queue.add(make_pod_info(_pod(f"high-{second}", priority, second), CLASSES), float(second))
        queued = queue.pop(float(second))
        assert queued is not None
        popped.append(queued.info.name)
        queue.done(queued.uid)
    assert "low" in popped


def test_the_pod_with_the_lower_priority_waits_where_priorities_alone_decide() -> None:
    """The scenario of the property, but with PrioritySort: the pod is never popped."""
    queue = SchedulingQueue(QueueRules(lambda pod, at: (-pod.priority, at), lambda _: SUCCESS, {}))
    queue.add(make_pod_info(_pod("low", 0, 0), CLASSES), 0.0)
    for second in range(1000):
        queue.add(make_pod_info(_pod(f"high-{second}", 1, second), CLASSES), float(second))
        queued = queue.pop(float(second))
        assert queued is not None
        assert queued.info.name != "low"
        queue.done(queued.uid)
