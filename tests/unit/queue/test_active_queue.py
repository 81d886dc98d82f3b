from __future__ import annotations

from stowage.queue import QueuedPod
from stowage.queue.active_queue import ActiveQueue
from tests.unit.queue.scenario import pending


def test_pods_are_popped_in_the_order_of_their_sort_keys() -> None:
    queue = ActiveQueue()
    for name, key in (("b", 2), ("a", 1)):
        queue.put(QueuedPod(pending(name), 0.0), (key,))
    assert [queued.info.name for queued in queue.in_order()] == ["a", "b"]
    first = queue.pop()
    assert first is not None
    assert first.info.name == "a"
    assert queue.remove(first.uid) is None
    assert len(queue) == 1
