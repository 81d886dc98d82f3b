from __future__ import annotations

from stowage.api.cluster_events import EventResource, QueueingHint
from stowage.api.instructions import BindPod
from stowage.api.status import Code
from stowage.framework import CycleState, NoArgs
from stowage.plugins.default_binder import DefaultBinder
from stowage.plugins.gang_scheduling import GangScheduling
from stowage.plugins.priority_sort import PrioritySort
from stowage.plugins.scheduling_gates import SchedulingGates
from stowage.state import ClusterCache, make_pod_info
from tests.stories.gang_driver import make_group, make_member
from tests.support.builders import make_pod


def test_higher_priority_goes_first_then_the_earlier_pod() -> None:
    classes = ClusterCache().classes
    sort = PrioritySort(NoArgs())
    keys = {
        name: sort.sort_key(make_pod_info(make_pod(name, priority=priority), classes), queued_at)
        for name, priority, queued_at in (("low", None, 1.0), ("late", 5, 3.0), ("early", 5, 2.0))
    }
    assert sorted(keys, key=lambda name: keys[name]) == ["early", "late", "low"]


def test_a_pod_is_gated_until_its_last_gate_is_removed() -> None:
    classes = ClusterCache().classes
    plugin = SchedulingGates(NoArgs())
    gated = plugin.pre_enqueue(make_pod_info(make_pod("p", gates=["b", "a"]), classes))
    assert gated.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert gated.message == "waiting for scheduling gates: [b a]"
    assert plugin.pre_enqueue(make_pod_info(make_pod("p"), classes)).is_success


def test_the_default_binder_returns_a_binding_instruction() -> None:
    pod = make_pod_info(make_pod("p"), ClusterCache().classes)
    instruction = DefaultBinder(NoArgs()).bind(CycleState(), pod, "n0")
    assert instruction == BindPod(pod.reference, "n0")


def test_only_changes_of_its_own_group_may_let_in_a_gang_member() -> None:
    (registration,) = (
        each
        for each in GangScheduling(NoArgs()).events_to_register()
        if each.event.resource is EventResource.POD_GROUP
    )
    assert registration.hint is not None
    member = make_pod_info(make_member("p", "g"), ClusterCache().classes)
    own, other = make_group("g", 2), make_group("h", 2)
    assert registration.hint(member, None, own) is QueueingHint.QUEUE
    assert registration.hint(member, own, own) is QueueingHint.QUEUE
    assert registration.hint(member, other, other) is QueueingHint.SKIP
