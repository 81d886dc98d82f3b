"""Preemption where a node is judged as it would be without its victims."""

from __future__ import annotations

from stowage.api.events import DeviceObjectSeen, NamespaceSeen, PendingPodSeen
from stowage.api.instructions import EvictPod, PatchPodStatus
from stowage.api.objects.pod import Affinity, PodAffinity, TopologySpreadConstraint
from stowage.api.objects.volume import GCEPersistentDiskVolumeSource, Volume
from tests.stories.preemption.driver import HIGH, HIGHER, PreemptionDriver, names
from tests.support.builders import HOSTNAME, affinity_term, label_selector, make_namespace
from tests.support.device_builders import make_claim, make_class, make_slice, pod_with_claims

ZONE, RACK = "zone", "rack"


def _in_one_zone() -> PreemptionDriver:
    """Two nodes of a zone; a pod that may be evicted runs on ``a``, ``b`` is full."""
    driver = PreemptionDriver()
    driver.add_nodes("a", "b", cpu="1", labels={ZONE: "z"})
    driver.show_running("low", "a")
    return driver


def _evicted(driver: PreemptionDriver) -> list[str]:
    driver.schedule_next()
    return names(driver.take(EvictPod))


def _apart_from(*terms: tuple[str, str]) -> Affinity:
    """Anti-affinity by topology key to the pods with this label ``app``."""
    wanted = (affinity_term(key, label_selector({"app": app})) for key, app in terms)
    return Affinity(pod_anti_affinity=PodAffinity(tuple(wanted)))


def test_nobody_is_evicted_where_a_pod_elsewhere_in_the_zone_is_still_too_near() -> None:
    driver = _in_one_zone()
    driver.show_running("db", "b", priority=HIGHER, labels={"app": "db"})
    driver.show_pending("p", affinity=_apart_from((ZONE, "db"), (HOSTNAME, "web")))
    assert _evicted(driver) == []


def test_nobody_is_evicted_where_a_pod_elsewhere_in_the_zone_keeps_others_away() -> None:
    driver = _in_one_zone()
    driver.show_running("picky", "b", priority=HIGHER, affinity=_apart_from((ZONE, "web")))
    driver.show_pending("p", labels={"app": "web"})
    assert _evicted(driver) == []


def test_a_victim_that_keeps_a_namespace_away_makes_room_by_its_end() -> None:
    driver = PreemptionDriver()
    driver.add_nodes("a", cpu="1")
    driver.handle(NamespaceSeen(make_namespace("default", labels={"team": "x"})))
    term = affinity_term(
        HOSTNAME, label_selector({"app": "web"}), namespace_selector=label_selector({"team": "x"})
    )
    away = Affinity(pod_anti_affinity=PodAffinity((term,)))
    driver.show_running("picky", "a", affinity=away)
    driver.show_pending("p", labels={"app": "web"})
    assert _evicted(driver) == ["picky"]


def test_nodes_without_all_topology_keys_are_no_domains_in_a_dry_run() -> None:
    """The node ``b`` has a zone and no rack, so its empty zone makes no skew."""
    driver = PreemptionDriver()
    driver.add_nodes("a", cpu="3", labels={ZONE: "z1", RACK: "r1"})
    driver.add_nodes("b", cpu="3", labels={ZONE: "z2"})
    for name in ("web-0", "web-1"):
        driver.show_running(name, "a", priority=HIGHER, labels={"app": "web"})
    driver.show_running("low", "a")
    selector = label_selector({"app": "web"})
    constraints = tuple(
        TopologySpreadConstraint(1, key, "DoNotSchedule", label_selector=selector)
        for key in (ZONE, RACK)
    )
    driver.show_pending("p", labels={"app": "web"}, topology_spread_constraints=constraints)
    assert _evicted(driver) == ["low"]


def test_nobody_is_evicted_where_too_few_domains_make_the_lowest_count_zero() -> None:
    driver = PreemptionDriver()
    driver.add_nodes("a", cpu="3", labels={ZONE: "z"})
    web = {"app": "web"}
    driver.show_running("stays", "a", priority=HIGHER, labels=web)
    driver.show_running("low", "a", labels=web)
    spread = TopologySpreadConstraint(1, ZONE, "DoNotSchedule", label_selector(web), min_domains=2)
    driver.show_pending("p", labels=web, topology_spread_constraints=(spread,))
    assert _evicted(driver) == []


def test_a_victim_that_uses_the_disk_of_the_preemptor_makes_room_by_its_end() -> None:
    disk = Volume("data", gce_persistent_disk=GCEPersistentDiskVolumeSource("disk"))
    driver = PreemptionDriver()
    driver.add_nodes("a", cpu="1")
    driver.show_running("low", "a", volumes=(disk,))
    driver.show_pending("p", volumes=(disk,))
    assert _evicted(driver) == ["low"]


def test_a_pod_whose_victims_terminate_on_its_nominated_node_evicts_nobody_elsewhere() -> None:
    driver = PreemptionDriver()
    driver.add_nodes("a", "b", cpu="1")
    driver.show_running("leaving", "a")
    driver.show_running("low", "b")
    driver.show_terminating("leaving")
    driver.show_pending("p", nominated_node="a")
    assert _evicted(driver) == []


def _with_broken_selector(*nodes: str) -> PreemptionDriver:
    """Nodes of one CPU, and a pod whose device class cannot be judged on ``a``."""
    driver = PreemptionDriver()
    driver.add_nodes(*nodes, cpu="1")
    expression = 'device.attributes["gpu.example.com"].nosuch == 1'
    objects = (make_class(expression=expression), make_slice("a", ["gpu-0"]), make_claim("c"))
    driver.handle(*(DeviceObjectSeen(each) for each in objects))
    return driver


def test_a_filter_that_fails_once_the_victims_are_gone_is_an_error_of_preemption() -> None:
    """No CPU is free, so that the claim is looked at in the dry run only."""
    driver = _with_broken_selector("a", "b")
    driver.show_running("low", "a")
    driver.handle(PendingPodSeen(pod_with_claims("p", "c", cpu="1", priority=HIGH)))
    assert _evicted(driver) == []
    (patch,) = driver.take(PatchPodStatus)
    filter_error = 'preemption: running "DynamicResources" filter plugin: class gpu: selector #0: '
    assert filter_error + "CEL runtime error:" in patch.message
    assert "preemption: 0/2 nodes" not in patch.message


def test_nobody_is_evicted_on_a_node_without_the_topology_key_of_the_affinity() -> None:
    driver = PreemptionDriver()
    driver.add_nodes("a", cpu="1")
    driver.show_running("low", "a")
    own = affinity_term(ZONE, label_selector({"app": "web"}))
    near = Affinity(pod_affinity=PodAffinity((own,)))
    driver.show_pending("p", labels={"app": "web"}, affinity=near)
    assert _evicted(driver) == []


def test_a_victim_of_a_selected_namespace_may_leave_if_another_such_pod_stays_in_the_zone() -> None:
    driver = _in_one_zone()
    driver.handle(NamespaceSeen(make_namespace("default", labels={"team": "x"})))
    driver.show_running("near", "a", labels={"app": "web"}, cpu="0")
    driver.show_running("other", "b", labels={"app": "web"}, priority=HIGHER)
    term = affinity_term(
        ZONE, label_selector({"app": "web"}), namespace_selector=label_selector({"team": "x"})
    )
    driver.show_pending("p", affinity=Affinity(pod_affinity=PodAffinity((term,))))
    assert _evicted(driver) == ["low"]


def test_a_node_that_stays_too_small_in_two_ways_is_left_out_of_the_search() -> None:
    driver = PreemptionDriver()
    driver.add_nodes("a", "b", cpu="2", memory="2Gi")
    driver.show_running("large", "a", cpu="1500m", memory="1500Mi", priority=HIGHER)
    driver.show_running("on-a", "a", cpu="100m", memory="100Mi")
    driver.show_running("on-b", "b", cpu="1500m", memory="1500Mi")
    driver.show_pending("p", cpu="1", memory="1Gi")
    assert _evicted(driver) == ["on-b"]
