from __future__ import annotations

from stowage.api.interruptible import finish
from stowage.api.status import SUCCESS, Code, Status, error, unresolvable, unschedulable
from stowage.framework import CycleState, Diagnosis, PostFilterOutcome
from tests.support.builders import make_node, make_pod
from tests.support.mirrored_cluster import MirroredCluster
from tests.support.plugins.small_plugins import FixedPostFilter, framework_of


def _run(*plugins: FixedPostFilter) -> PostFilterOutcome:
    cluster = MirroredCluster([make_node("n0")])
    pod = cluster.info(make_pod("p"))
    framework, snapshot = framework_of(*plugins), cluster.snapshot()
    return finish(framework.run_post_filter(CycleState(), pod, snapshot, Diagnosis(1)))


def test_reasons_of_all_rejections_are_listed_under_the_first_plugin() -> None:
    outcome = _run(
        FixedPostFilter("A", unschedulable("no claims")),
        FixedPostFilter("B", unschedulable("no victims"), ""),
    )
    assert outcome.status.code is Code.UNSCHEDULABLE
    assert (outcome.status.plugin, outcome.status.message) == ("A", "no claims, no victims")
    assert outcome.nominated_node_name == ""


def test_the_first_success_ends_the_run() -> None:
    outcome = _run(
        FixedPostFilter("A", unschedulable("no")),
        FixedPostFilter("B", SUCCESS, "n0"),
        FixedPostFilter("C", error()),
    )
    assert (outcome.status.is_success, outcome.nominated_node_name) == (True, "n0")


def test_an_unresolvable_post_filter_rejection_ends_the_run() -> None:
    outcome = _run(FixedPostFilter("A", unresolvable("never")), FixedPostFilter("B", SUCCESS, "n0"))
    assert (outcome.status.plugin, outcome.status.message) == ("A", "never")


def test_an_error_ends_the_run_and_keeps_the_nomination() -> None:
    outcome = _run(FixedPostFilter("A", error("not found")), FixedPostFilter("B", SUCCESS, "n0"))
    assert outcome.status == Status(Code.ERROR, ("not found",), "A")
    assert outcome.nominated_node_name is None


def test_without_plugins_the_nomination_is_cleared() -> None:
    assert _run().status.code is Code.UNSCHEDULABLE
