"""Whatever a sort key does, no pod vanishes, and the others go on."""

from __future__ import annotations

from typing import Any

from stowage.queue import Place, QueueRules, SchedulingQueue
from stowage.state.pods.pod_info import PodInfo

from tests.unit.queue.scenario import Gate, pending, pop_names


def _queue(odd: dict[str, Any]) -> SchedulingQueue:
    def sort_key(pod: PodInfo, _queued_at: float) -> tuple[Any, ...]:
        key = odd.get(pod.name, pod.name)
        if isinstance(key, Exception):
            raise key
        return (key,)

    return SchedulingQueue.of(QueueRules(sort_key, Gate(), {}))


def test_a_pod_whose_sort_key_raises_backs_off_and_is_sorted_anew() -> None:
    odd: dict[str, Any] = {"bad": ValueError("no tenant")}
    queue = _queue(odd)
    assert queue.add(pending("bad"), 0.0) is Place.BACKOFF
    assert queue.add(pending("good"), 0.0) is Place.ACTIVE
    assert [(each.info.name, why) for each, why in queue.drain_unsorted()] == [
        ("bad", "ValueError('no tenant')")
    ]
    assert pop_names(queue) == ["good"]
    odd.clear()
    queue.flush(2.0)
    queue.validate()
    assert pop_names(queue) == ["bad"]


def test_a_pod_whose_sort_key_compares_with_no_other_backs_off() -> None:
    queue = _queue({"odd": 7})
    for name in ("a", "b", "odd", "c"):
        queue.add(pending(name), 0.0)
    queue.validate()
    assert [each.info.name for each, _ in queue.drain_unsorted()] == ["odd"]
    assert pop_names(queue) == ["a", "b", "c"]
    queue.flush(2.0)
    assert pop_names(queue) == ["odd"]
