"""Groups of the coscheduling plugin: a label of a pod names its group."""

from __future__ import annotations

from stowage.api.events import PodGroupSeen
from stowage.api.instructions import PatchPodGroupStatus
from stowage.api.objects.pod_groups import COSCHEDULING_GROUPS
from tests.stories.gang_driver import GangDriver, make_group
from tests.support.builders import make_pod


def test_a_group_of_the_coscheduling_plugin_is_a_gang_by_its_label() -> None:
    driver = GangDriver()
    driver.add_nodes("a", cpu="4")
    driver.handle(PodGroupSeen(make_group(min_count=2), COSCHEDULING_GROUPS))
    labels = {"scheduling.x-k8s.io/pod-group": "g"}
    driver.show(make_pod("p-0", cpu="1", labels=labels))
    driver.run(3)
    assert driver.bound() == []
    driver.show(make_pod("p-1", cpu="1", labels=labels))
    driver.run()
    assert driver.bound() == ["p-0", "p-1"]
    assert driver.take(PatchPodGroupStatus) == []


def test_a_waiting_pod_whose_label_changes_may_complete_its_new_group() -> None:
    driver = GangDriver()
    driver.add_nodes("a", cpu="4")
    driver.handle(PodGroupSeen(make_group(min_count=2), COSCHEDULING_GROUPS))
    for name, group in (("p-0", "g"), ("p-1", "other"), ("p-1", "g")):
        labels = {"scheduling.x-k8s.io/pod-group": group}
        driver.show(make_pod(name, cpu="1", labels=labels))
    driver.run()
    assert driver.bound() == ["p-0", "p-1"]
    assert driver.engine.incoming_counts()["active", "UnschedulablePodUpdate"] == 2
    driver.check_replay()


def test_members_go_in_when_the_minimum_of_their_coscheduling_group_is_lowered() -> None:
    driver = GangDriver()
    driver.add_nodes("a", cpu="4")
    driver.handle(PodGroupSeen(make_group(min_count=3), COSCHEDULING_GROUPS))
    labels = {"scheduling.x-k8s.io/pod-group": "g"}
    for name in ("p-0", "p-1"):
        driver.show(make_pod(name, cpu="1", labels=labels))
    driver.run(3)
    assert driver.bound() == []
    driver.handle(PodGroupSeen(make_group(min_count=2), COSCHEDULING_GROUPS))
    driver.run()
    assert driver.bound() == ["p-0", "p-1"]
    counts = driver.engine.state.queue.incoming_counts
    assert counts["active", "scheduling.k8s.io/PodGroupUpdate"] == 2
