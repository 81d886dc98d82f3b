from __future__ import annotations

from typing import Any

from stowage.api.cluster_events import ActionType, ClusterEvent, EventResource
from stowage.api.interruptible import finish
from stowage.queue import QueuedPod
from stowage.queue.unschedulable_pods import UnschedulablePods
from tests.unit.queue.scenario import CLAIM_ADD, PROFILE, pending


def _rejected(name: str, *plugins: str, queued_at: float = 0.0, **fields: Any) -> QueuedPod:
    queued = QueuedPod(pending(name, **fields), queued_at)
    queued.fail_attempt(queued_at, plugins, ())
    return queued


def _filled(*pods: QueuedPod) -> UnschedulablePods:
    waiting = UnschedulablePods(300.0)
    for queued in pods:
        waiting.put(queued)
    assert list(waiting.inconsistencies()) == []
    return waiting


def _names(pods: list[QueuedPod]) -> list[str]:
    return [queued.info.name for queued in pods]


def _listed_under(waiting: UnschedulablePods, *plugins: str) -> list[list[str]]:
    """The names of the pods of each group that these plugins may release."""
    groups = waiting.groups_rejected_by((PROFILE, plugin) for plugin in plugins)
    return [_names(list(group.pods.values())) for group in groups]


def test_pods_are_found_by_the_plugins_that_rejected_them() -> None:
    waiting = _filled(_rejected("a", "Fit"), _rejected("b", "Ports"), _rejected("c", "Fit"))
    assert _listed_under(waiting, "Fit") == [["a", "c"]]
    assert waiting.groups_rejected_by([(PROFILE, "Other"), ("other-profile", "Fit")]) == []
    assert waiting.counts_by_plugin() == {(PROFILE, "Fit"): 2, (PROFILE, "Ports"): 1}


def test_a_pod_rejected_by_several_plugins_is_found_once() -> None:
    waiting = _filled(_rejected("a", "Fit", "Ports"))
    assert _listed_under(waiting, "Fit", "Ports") == [["a"]]


def test_pods_of_one_class_that_the_same_plugins_rejected_form_a_group() -> None:
    waiting = _filled(
        _rejected("a", "Fit"),
        _rejected("b", "Fit", "Ports"),
        _rejected("c", "Fit", labels={"app": "c"}),
        _rejected("d", "Fit"),
    )
    assert _listed_under(waiting, "Fit") == [["a", "d"], ["b"], ["c"]]
    assert [_names(list(group.pods.values())) for group in waiting.groups()] == [
        ["a", "d"],
        ["b"],
        ["c"],
    ]


def test_an_updated_pod_moves_to_the_group_of_its_new_class() -> None:
    one, other = _rejected("a", "Fit"), _rejected("b", "Fit", labels={"app": "b"})
    waiting = _filled(one, other)
    one.info = pending("a", labels={"app": "b"})
    waiting.put(one)
    assert _listed_under(waiting, "Fit") == [["b", "a"]]
    assert list(waiting.inconsistencies()) == []


def test_a_gated_pod_is_found_by_its_gating_plugin_only() -> None:
    queued = _rejected("a", "Fit")
    queued.gate("Gatekeeper", ())
    waiting = _filled(queued)
    assert waiting.num_gated == 1
    assert _listed_under(waiting, "Fit") == []
    assert _listed_under(waiting, "Gatekeeper") == [["a"]]


def test_a_gated_pod_has_a_deadline_only_if_its_gate_waits_for_every_event() -> None:
    queued = _rejected("a")
    queued.gate("Gatekeeper", (CLAIM_ADD,))
    assert _filled(queued).next_deadline() is None
    queued.gate("Stranger", (ClusterEvent(EventResource.WILDCARD, ActionType.ALL),))
    assert _filled(queued).next_deadline() == 300.0


def test_adding_a_pod_again_lists_it_under_the_plugins_of_its_last_rejection() -> None:
    queued = _rejected("a", "Fit")
    waiting = _filled(queued)
    queued.gate("Gatekeeper", ())
    waiting.put(queued)
    assert waiting.counts_by_plugin() == {(PROFILE, "Gatekeeper"): 1}
    assert len(waiting) == 1
    assert list(waiting.inconsistencies()) == []


def test_a_removed_pod_is_not_found() -> None:
    queued = _rejected("a", "Fit")
    waiting = _filled(queued)
    assert waiting.remove(queued.uid) is queued
    assert waiting.remove(queued.uid) is None
    assert waiting.counts_by_plugin() == {}
    assert waiting.next_deadline() is None
    assert list(waiting.inconsistencies()) == []


def test_pods_of_a_group_are_removed_and_the_others_of_the_group_stay() -> None:
    first, second, third = pods = [_rejected(name, "Fit") for name in "abc"]
    waiting = _filled(*pods)
    waiting.remove_all([])
    waiting.remove_all([first, third])
    assert _listed_under(waiting, "Fit") == [["b"]]
    assert [waiting.remove(each.uid) for each in (first, second, third)] == [None, second, None]
    assert list(waiting.inconsistencies()) == []


def test_a_gated_group_is_removed_as_a_whole() -> None:
    pods = [_rejected(name) for name in "ab"]
    for queued in pods:
        queued.gate("Gatekeeper", (ClusterEvent(EventResource.WILDCARD, ActionType.ALL),))
    waiting = _filled(*pods)
    waiting.remove_all(pods)
    assert (len(waiting), waiting.num_gated, waiting.next_deadline()) == (0, 0, None)
    assert list(waiting.inconsistencies()) == []


def test_a_pod_is_overdue_after_five_minutes_at_the_next_half_minute() -> None:
    waiting = _filled(_rejected("a", "Fit", queued_at=10.0), _rejected("b", "Fit", queued_at=40.0))
    assert waiting.next_deadline() == 330.0
    assert finish(waiting.overdue(now=329.9)) == []
    assert _names(finish(waiting.overdue(now=330.0))) == ["a"]


def test_an_overdue_pod_that_stays_is_overdue_again_after_five_minutes() -> None:
    waiting = _filled(_rejected("a", "Fit"))
    assert _names(finish(waiting.overdue(now=300.0))) == ["a"]
    assert finish(waiting.overdue(now=599.0)) == []
    assert _names(finish(waiting.overdue(now=600.0))) == ["a"]


def test_problems_names_an_index_that_differs_from_a_recount() -> None:
    queued = _rejected("a", "Fit")
    waiting = _filled(queued)
    queued.unschedulable_plugins.add("Ports")
    assert list(waiting.inconsistencies()) == [
        "pod default/a is not listed under the plugins that reject it",
        "the index from plugins to pods differs from a recount",
    ]


def test_problems_names_a_pod_whose_deadline_is_not_listed() -> None:
    class Open(UnschedulablePods):
        def damage(self) -> None:
            self._due.clear()

    waiting = Open(max_in_unschedulable_s=300.0)
    waiting.put(_rejected("a", "Fit"))
    waiting.damage()
    assert list(waiting.inconsistencies()) == [
        "pod default/a has no deadline, or one without a reason",
        "deadlines without pods are kept",
    ]


def test_problems_names_a_deadline_of_no_pod() -> None:
    class Open(UnschedulablePods):
        def damage(self) -> None:
            self._due[1.0] = {}

    waiting = Open(max_in_unschedulable_s=300.0)
    waiting.put(_rejected("a", "Fit"))
    waiting.damage()
    assert list(waiting.inconsistencies()) == ["deadlines without pods are kept"]
