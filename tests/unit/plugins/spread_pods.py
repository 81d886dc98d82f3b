"""Pods to be spread over two zones, and what PodTopologySpread decides about them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stowage.api.objects.meta import LabelSelector
from stowage.api.objects.node import Node
from stowage.api.objects.pod import Pod, TopologySpreadConstraint
from stowage.plugins.pod_topology_spread import PodTopologySpread, PodTopologySpreadArgs
from tests.support.builders import ZONE, label_selector, make_node, make_pod
from tests.support.mirrored_cluster import MirroredCluster
from tests.unit.plugins.single_plugin import Scores, Verdicts, scores, verdicts

SKEWED = ("node(s) didn't match pod topology spread constraints", False)
UNLABELLED = (
    "node(s) didn't match pod topology spread constraints (missing required label)",
    True,
)

WEB = label_selector({"app": "web"})


def spread(
    key: str = ZONE, selector: LabelSelector | None = WEB, soft: bool = False, **fields: Any
) -> TopologySpreadConstraint:
    """A constraint with maxSkew 1 unless given."""
    return TopologySpreadConstraint(
        topology_key=key,
        label_selector=selector,
        when_unsatisfiable="ScheduleAnyway" if soft else "DoNotSchedule",
        **({"max_skew": 1} | fields),
    )


def web(name: str, node: str = "", **fields: Any) -> Pod:
    """A pod with the label ``app: web``."""
    return make_pod(name, node=node, **({"labels": {"app": "web"}} | fields))


def incoming(*constraints: TopologySpreadConstraint, **fields: Any) -> Pod:
    """A pending pod with these constraints."""
    return web("p", topology_spread_constraints=constraints, **fields)


def zones() -> list[Node]:
    """Two nodes in zone a, one in zone b, one without a zone."""
    return [
        make_node("a1", zone="a"),
        make_node("a2", zone="a"),
        make_node("b1", zone="b"),
        make_node("bare"),
    ]


def placed(*node_names: str, **fields: Any) -> list[Pod]:
    """A pod on each of these nodes."""
    return [web(f"web-{index}", node, **fields) for index, node in enumerate(node_names)]


def refused(
    cluster: MirroredCluster, pod: Pod, args: PodTopologySpreadArgs | None = None
) -> Verdicts | None:
    """The nodes that are rejected, with the reasons; None if Filter is skipped."""
    return verdicts(PodTopologySpread(args), cluster, pod)


def scored(
    cluster: MirroredCluster,
    pod: Pod,
    args: PodTopologySpreadArgs | None = None,
    feasible: Sequence[str] | None = None,
) -> Scores | None:
    """Raw and normalised scores; None if Score is skipped."""
    return scores(PodTopologySpread(args), cluster, pod, feasible)
