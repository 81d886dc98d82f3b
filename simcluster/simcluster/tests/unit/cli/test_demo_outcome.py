"""The outcome of the demo: success, or the problems found."""

from io import StringIO

import msgspec
import pytest
from rich.console import Console

from simcluster.demo.outcome import Outcome, percentile
from simcluster.demo.report import print_report
from simcluster.demo.sample import EXPECT_ANNOTATION, PENDING
from simcluster.harness.audit import ClusterState
from simcluster.harness.placements import Placement
from stowage.api.objects.meta import Condition
from stowage.api.objects.pod import Pod
from tests.support.builders import make_node, make_pod

REASON = "0/1 nodes are available: 1 node(s) did not satisfy plugin(s) [/A B]."
SIZE = "node.kubernetes.io/instance-type"


def waiting(name: str, *, meant: bool = False) -> Placement:
    """A pod without a node, 1 s old, with this reason in its condition."""
    pod = make_pod(name, labels={"app": name})
    annotations = {EXPECT_ANNOTATION: PENDING} if meant else {}
    condition = Condition(
        type="PodScheduled", status="False", reason="Unschedulable", message=REASON
    )
    return Placement(
        msgspec.structs.replace(
            pod,
            metadata=msgspec.structs.replace(pod.metadata, annotations=annotations),
            status=msgspec.structs.replace(pod.status, conditions=(condition,)),
        ),
        created_at=0.0,
    )


def bound(name: str, node: str = "n", at: float = 1.0, cpu: str = "1") -> Placement:
    placement = Placement(make_pod(name), created_at=0.0)
    placement.see(make_pod(name, node=node, cpu=cpu, labels={"app": "web"}), at)
    return placement


def outcome(*placements: Placement, expected: int | None = None) -> Outcome:
    pods: list[Pod] = [placement.pod for placement in placements]
    node = make_node("n", cpu="4", zone="zone-a", labels={SIZE: "small"})
    return Outcome(
        ClusterState([node], pods), placements, len(placements) if expected is None else expected
    )


def test_the_demo_succeeds_when_exactly_the_expected_pods_are_bound() -> None:
    assert outcome(bound("a"), waiting("w", meant=True)).problems() == []


def test_a_pod_that_is_unexpectedly_pending_is_a_problem() -> None:
    assert outcome(waiting("w")).problems() == [f"pod default/w was not bound: {REASON}"]


def test_a_pod_without_a_scheduling_attempt_is_a_problem() -> None:
    untried = Placement(make_pod("p"), created_at=0.0)
    assert outcome(untried).problems() == ["pod default/p was not bound: not tried yet"]


def test_a_pod_that_is_unexpectedly_bound_is_a_problem() -> None:
    placement = waiting("w", meant=True)
    spec = msgspec.structs.replace(placement.pod.spec, node_name="n")
    placement.see(msgspec.structs.replace(placement.pod, spec=spec), 1.0)
    assert outcome(placement).problems() == ["pod default/w was bound to n, no node should take it"]


def test_a_pod_seen_on_two_nodes_is_a_problem() -> None:
    placement = bound("a")
    placement.see(make_pod("a", node="m"), 2.0)
    assert "pod default/a was seen on n and m" in outcome(placement).problems()


def test_missing_pods_are_a_problem() -> None:
    assert outcome(bound("a"), expected=3).problems() == ["1 pods were created of 3"]


def test_an_overcommitted_node_is_a_problem() -> None:
    assert outcome(bound("a", cpu="3"), bound("b", cpu="3")).problems() == [
        "node n: cpu 6000 requested of 4000"
    ]


def test_the_rate_is_measured_from_the_first_to_the_last_binding() -> None:
    pace = outcome(*(bound(str(at), at=float(at)) for at in (1, 2, 3, 5))).pace()
    # 3 further bindings in the 4 s after the first one.
    assert pace.binds_per_s == 0.75
    assert pace.p50_s == 2.0
    assert pace.p99_s == 5.0


def test_no_rate_is_measured_for_a_single_binding() -> None:
    assert outcome(bound("a")).pace().binds_per_s is None


@pytest.mark.parametrize(("percent", "want"), [(1, 1.0), (50, 2.0), (75, 3.0), (99, 4.0)])
def test_percentiles_are_values_that_occurred(percent: int, want: float) -> None:
    assert percentile([1.0, 2.0, 3.0, 4.0], percent) == want


def test_the_report_shows_where_pods_went_and_why_others_wait() -> None:
    console = Console(width=120, record=True, file=StringIO())
    print_report(console, outcome(bound("a"), bound("b", at=2.0), waiting("w", meant=True)))
    text = console.export_text()
    for words in ("web", "zone-a", "small", "default/w", REASON, "binds/s", "p99"):
        assert words in text
