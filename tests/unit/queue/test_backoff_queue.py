from __future__ import annotations

import pytest

from stowage.queue import QueuedPod
from stowage.queue.backoff_queue import BackoffQueue
from tests.unit.queue.scenario import by_priority, pending


def _rejected(name: str, queued_at: float = 0.0, times: int = 1, priority: int = 0) -> QueuedPod:
    queued = QueuedPod(pending(name, priority=priority), queued_at)
    for _ in range(times):
        queued.fail_attempt(queued_at, ["NodeResourcesFit"], ())
    return queued


def _failed(name: str, queued_at: float = 0.0, times: int = 1) -> QueuedPod:
    queued = QueuedPod(pending(name), queued_at)
    for _ in range(times):
        queued.fail_attempt(queued_at, (), ())
    return queued


def _filled(*pods: QueuedPod) -> BackoffQueue:
    queue = BackoffQueue(1.0, 10.0)
    for queued in pods:
        queue.put(queued, by_priority(queued.info, queued.queued_at))
    assert list(queue.inconsistencies()) == []
    return queue


def _names(pods: list[QueuedPod]) -> list[str]:
    return [queued.info.name for queued in pods]


@pytest.mark.parametrize(
    ("times", "backoff_s"), [(0, 0), (1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (6, 10), (5000, 10)]
)
def test_backoff_doubles_from_one_second_to_ten(times: int, backoff_s: float) -> None:
    assert BackoffQueue(1.0, 10.0).backoff_s(_rejected("p", times=times)) == backoff_s
    assert BackoffQueue(1.0, 10.0).backoff_s(_failed("p", times=times)) == backoff_s


def test_consecutive_errors_count_instead_of_rejections() -> None:
    queued = _rejected("p", times=4)
    queued.fail_attempt(0.0, (), ())
    assert BackoffQueue(1.0, 10.0).backoff_s(queued) == 1.0


def test_a_rejection_resets_the_count_of_errors() -> None:
    queued = _failed("p", times=4)
    queued.fail_attempt(0.0, ["NodeResourcesFit"], ())
    assert BackoffQueue(1.0, 10.0).backoff_s(queued) == 1.0


def test_a_maximum_of_zero_disables_backoff() -> None:
    assert not BackoffQueue(1.0, 0.0).is_backing_off(_rejected("p", times=3), now=0.0)


def test_an_initial_backoff_above_the_maximum_is_capped() -> None:
    assert BackoffQueue(20.0, 10.0).backoff_s(_rejected("p")) == 10.0


def test_a_backoff_lasts_until_the_end_of_its_last_second() -> None:
    queue = BackoffQueue(1.0, 10.0)
    queued = _rejected("p", queued_at=100.5)
    assert queue.is_backing_off(queued, now=101.999)
    assert not queue.is_backing_off(queued, now=102.0)
    assert queued.backoff_expires_at == 101.0


def test_completed_backoffs_are_ordered_by_second_and_then_by_priority() -> None:
    queue = _filled(
        _rejected("late", queued_at=2.0, priority=9),
        _rejected("low", queued_at=0.1),
        _rejected("high", queued_at=0.9, priority=5),
    )
    assert queue.next_deadline() == 2.0
    assert queue.pop_completed(now=1.9, limit=9) == []
    assert _names(queue.pop_completed(now=2.0, limit=9)) == ["high", "low"]
    assert _names(queue.pop_completed(now=4.0, limit=9)) == ["late"]
    assert queue.next_deadline() is None


def test_an_early_pop_takes_the_rejected_pod_whose_backoff_ends_first() -> None:
    queue = _filled(_rejected("second", queued_at=5.0), _rejected("first", queued_at=1.0))
    early = queue.pop_early()
    assert early is not None
    assert early.info.name == "first"


def test_pods_that_failed_with_an_error_are_never_popped_early() -> None:
    queue = _filled(_failed("failed"))
    assert queue.pop_early() is None
    assert len(queue) == 1
    assert _names(queue.pop_completed(now=2.0, limit=9)) == ["failed"]


def test_a_pod_can_be_found_in_and_removed_from_either_heap() -> None:
    rejected, failed = _rejected("rejected"), _failed("failed")
    queue = _filled(rejected, failed)
    assert list(queue) == [rejected, failed]
    for queued in (rejected, failed):
        assert queued.uid in queue
        assert queue.get(queued.uid) is queued
        assert queue.remove(queued.uid) is queued
        assert queued.uid not in queue
    assert len(queue) == 0


def test_problems_names_an_error_that_could_be_popped_early() -> None:
    queued = _rejected("p")
    queue = _filled(queued)
    queued.unschedulable_plugins.clear()
    assert list(queue.inconsistencies()) == [
        "pod default/p failed with an error but may be popped early"
    ]


def test_without_early_pops_each_backoff_ends_at_its_own_time() -> None:
    """Without windows, neither whole seconds nor priorities change the order."""
    queue = BackoffQueue(1.0, 10.0, pops_early=False)
    first, second = _rejected("first", 0.25), _rejected("second", 0.5, priority=9)
    for queued in (second, first):
        queue.put(queued, by_priority(queued.info, queued.queued_at))
    assert queue.is_backing_off(first, now=1.2)
    assert not queue.is_backing_off(first, now=1.25)
    assert not queue.can_pop_early()
    assert queue.next_deadline() == 1.25
    assert _names(queue.pop_completed(2.0, limit=9)) == ["first", "second"]
