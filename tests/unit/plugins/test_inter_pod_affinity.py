"""InterPodAffinity: filter, score and arguments."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stowage.api.objects.node import Node
from stowage.api.objects.pod import Affinity, Pod, PodAffinity
from stowage.api.values.selectors import EVERYTHING, NOTHING, Operator, Requirement
from stowage.framework.cycle_state import CycleState
from stowage.framework.profile.profile import decode_args
from stowage.plugins.inter_pod_affinity import InterPodAffinity, InterPodAffinityArgs, domain_sums
from stowage.plugins.inter_pod_affinity.domain_sums import DomainSums
from stowage.plugins.inter_pod_affinity.terms import _conjunction, matched_pods
from stowage.state.pods import pod_counts
from stowage.state.what_if.row_local import RowWhatIf
from tests.support.builders import (
    HOSTNAME,
    ZONE,
    affinity_term,
    label_selector,
    make_namespace,
    make_node,
    make_pod,
    weighted,
)
from tests.support.mirrored_cluster import (
    MirroredCluster,
    existing_nodes,
    verdicts_by_node,
    without_pod,
)
from tests.unit.plugins.pod_affinity import DB, NEAR_WEB, WEB, far, near, web
from tests.unit.plugins.single_plugin import Scores, Verdicts, scores, verdicts

AFFINITY = ("node(s) didn't match pod affinity rules", True)
ANTI_AFFINITY = ("node(s) didn't match pod anti-affinity rules", False)
EXISTING_ANTI_AFFINITY = ("node(s) didn't satisfy existing pods anti-affinity rules", False)


def zones() -> list[Node]:
    return [
        make_node("a1", zone="a"),
        make_node("a2", zone="a"),
        make_node("b1", zone="b"),
        make_node("bare", labels={HOSTNAME: "bare"}),
    ]


def refused(cluster: MirroredCluster, pod: Pod) -> Verdicts | None:
    return verdicts(InterPodAffinity(), cluster, pod)


def scored(
    cluster: MirroredCluster, pod: Pod, args: InterPodAffinityArgs | None = None
) -> Scores | None:
    return scores(InterPodAffinity(args), cluster, pod)


FILTER_CASES: dict[str, tuple[list[Pod], Pod, Verdicts | None]] = {
    "a pod without terms among pods without anti-affinity skips Filter": (
        [web("a1")],
        make_pod("p"),
        None,
    ),
    "a pod fits only in the zone of a pod that matches its affinity": (
        [web("a1")],
        make_pod("p", affinity=near(NEAR_WEB)),
        {"b1": AFFINITY, "bare": AFFINITY},
    ),
    "pods of another namespace match only if the term names it": (
        [web("a1", namespace="other")],
        make_pod("p", affinity=near(NEAR_WEB)),
        {"a1": AFFINITY, "a2": AFFINITY, "b1": AFFINITY, "bare": AFFINITY},
    ),
    "pods of a namespace that the term names match": (
        [web("a1", namespace="other")],
        make_pod("p", affinity=near(affinity_term(ZONE, WEB, namespaces=["other"]))),
        {"b1": AFFINITY, "bare": AFFINITY},
    ),
    "an empty namespace selector selects every namespace, known or not": (
        [web("a1", namespace="other")],
        make_pod("p", affinity=near(affinity_term(ZONE, WEB, namespace_selector=label_selector()))),
        {"b1": AFFINITY, "bare": AFFINITY},
    ),
    "a term without a label selector matches nothing": (
        [web("a1")],
        make_pod("p", affinity=near(affinity_term(ZONE, None))),
        {"a1": AFFINITY, "a2": AFFINITY, "b1": AFFINITY, "bare": AFFINITY},
    ),
    "one placed pod must match all required terms": (
        [web("a1"), make_pod("db-0", labels={"app": "db"}, node="a1")],
        make_pod("p", affinity=near(NEAR_WEB, affinity_term(ZONE, DB))),
        {"a1": AFFINITY, "a2": AFFINITY, "b1": AFFINITY, "bare": AFFINITY},
    ),
    "terms with different topology keys must all hold on the node": (
        [web("a1")],
        make_pod("p", affinity=near(NEAR_WEB, affinity_term(HOSTNAME, WEB))),
        {"a2": AFFINITY, "b1": AFFINITY, "bare": AFFINITY},
    ),
    "the first pod that matches its own affinity fits wherever the topology key exists": (
        [],
        web("", affinity=near(NEAR_WEB)),
        {"bare": AFFINITY},
    ),
    "the first-pod rule does not help a pod that does not match its own terms": (
        [],
        make_pod("p", affinity=near(NEAR_WEB)),
        {"a1": AFFINITY, "a2": AFFINITY, "b1": AFFINITY, "bare": AFFINITY},
    ),
    "the first-pod rule ignores matching pods on nodes without the topology label": (
        [web("bare", name="web-1")],
        web("", affinity=near(NEAR_WEB)),
        {"bare": AFFINITY},
    ),
    "a pod does not fit in the zone of a pod that matches its anti-affinity": (
        [web("a1")],
        make_pod("p", affinity=far(NEAR_WEB)),
        {"a1": ANTI_AFFINITY, "a2": ANTI_AFFINITY},
    ),
    "one matching anti-affinity term suffices": (
        [web("a1"), make_pod("db-0", labels={"app": "db"}, node="b1")],
        make_pod("p", affinity=far(affinity_term(HOSTNAME, WEB), affinity_term(HOSTNAME, DB))),
        {"a1": ANTI_AFFINITY, "b1": ANTI_AFFINITY},
    ),
    "the anti-affinity of a placed pod applies to the incoming pod": (
        [web("a1", affinity=far(affinity_term(ZONE, DB)))],
        make_pod("p", labels={"app": "db"}),
        {"a1": EXISTING_ANTI_AFFINITY, "a2": EXISTING_ANTI_AFFINITY},
    ),
    "anti-affinity of a pod on a node without the topology label has no effect": (
        [web("bare", affinity=far(affinity_term(ZONE, DB)))],
        make_pod("p", labels={"app": "db"}),
        None,
    ),
    "affinity is reported before own anti-affinity, and that before anti-affinity of placed pods": (
        [
            web("a1", affinity=far(affinity_term(HOSTNAME, DB))),
            make_pod("cache", labels={"app": "cache"}, node="a1"),
        ],
        make_pod(
            "p",
            labels={"app": "db"},
            affinity=Affinity(
                pod_affinity=PodAffinity((affinity_term(ZONE, WEB),)),
                pod_anti_affinity=PodAffinity(
                    (affinity_term(HOSTNAME, label_selector({"app": "cache"})),)
                ),
            ),
        ),
        {"a1": ANTI_AFFINITY, "b1": AFFINITY, "bare": AFFINITY},
    ),
    "a pod that is being deleted still counts": (
        [web("a1", terminating=True)],
        make_pod("p", affinity=far(NEAR_WEB)),
        {"a1": ANTI_AFFINITY, "a2": ANTI_AFFINITY},
    ),
}


@pytest.mark.parametrize("sentence", FILTER_CASES)
def test_filter_refuses_nodes_with_a_reason(sentence: str) -> None:
    placed, pod, want = FILTER_CASES[sentence]
    assert refused(MirroredCluster(zones(), placed), pod) == want


def test_a_namespace_selector_covers_the_namespaces_whose_labels_match() -> None:
    cluster = MirroredCluster(zones(), [web("a1", namespace="other")])
    term = affinity_term(ZONE, WEB, namespace_selector=label_selector({"team": "x"}))
    pod = make_pod("p", affinity=far(term))
    assert refused(cluster, pod) == {}
    cluster.update_namespace(make_namespace("other", labels={"team": "x"}))
    assert refused(cluster, pod) == {"a1": ANTI_AFFINITY, "a2": ANTI_AFFINITY}
    cluster.remove_namespace("other")
    assert refused(cluster, pod) == {}


def test_an_unknown_namespace_has_no_labels_for_the_terms_of_placed_pods() -> None:
    without_team = label_selector(None, ("team", "DoesNotExist", ()))
    term = affinity_term(ZONE, WEB, namespace_selector=without_team)
    placed = make_pod("guard", node="a1", namespace="other", affinity=far(term))
    cluster = MirroredCluster(zones(), [placed])
    assert refused(cluster, web("")) == {"a1": EXISTING_ANTI_AFFINITY, "a2": EXISTING_ANTI_AFFINITY}


def test_a_what_if_snapshot_is_filtered_by_its_own_pods() -> None:
    cluster = MirroredCluster(zones(), [web("a1")])
    plugin, state = InterPodAffinity(), CycleState()
    info = cluster.info(make_pod("p", affinity=far(NEAR_WEB)))
    snapshot = cluster.snapshot()
    plugin.pre_filter(state, info, snapshot)
    freed = existing_nodes(without_pod(snapshot, "uid-web-0"))
    assert verdicts_by_node(plugin.filter(state, info, freed), freed) == {}


def test_of_nodes_that_each_lose_their_own_pods_one_near_other_matching_pods_still_fits() -> None:
    placed = [web("a1"), web("a2", name="web-1"), web("b1", name="web-2")]
    plugin, cluster = InterPodAffinity(), MirroredCluster(zones(), placed)
    info, snapshot = cluster.info(make_pod("p", affinity=near(NEAR_WEB))), cluster.snapshot()
    state = CycleState()
    plugin.pre_filter(state, info, snapshot)
    what_if = RowWhatIf(snapshot, existing_nodes(snapshot).rows)
    what_if.remove(~what_if.removed)
    freed = what_if.view(np.arange(len(what_if)))
    verdict = verdicts_by_node(plugin.filter(state, info, freed), freed)
    assert verdict == {"b1": AFFINITY, "bare": AFFINITY}


def test_of_many_domains_only_those_with_pods_are_summed(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (domain_sums, pod_counts):
        monkeypatch.setattr(module, "MANY_DOMAINS", 32)
    nodes = [make_node(f"n{number:02}") for number in range(64)]
    cluster = MirroredCluster(nodes, [web("n07"), web("n40", name="web-1")])
    info, snapshot = cluster.info(make_pod("p", affinity=near(NEAR_WEB))), cluster.snapshot()
    (term,) = info.pod_class.required_affinity_terms
    sums = DomainSums(snapshot)
    sums.add(HOSTNAME, 3, matched_pods(term, snapshot))
    codes, amounts = sums.few()[HOSTNAME]
    names = snapshot.label_column(HOSTNAME).values
    assert dict(zip(codes.tolist(), amounts.tolist(), strict=True)) == {
        names.get("n07"): 3,
        names.get("n40"): 3,
    }
    assert sums.totals() == {}


def test_of_many_domains_that_all_have_pods_every_one_is_summed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in (domain_sums, pod_counts):
        monkeypatch.setattr(module, "MANY_DOMAINS", 32)
    names = [f"n{number:02}" for number in range(64)]
    cluster = MirroredCluster(
        [make_node(each) for each in names], [web(name, name=f"w-{name}") for name in names]
    )
    info, snapshot = cluster.info(make_pod("p", affinity=near(NEAR_WEB))), cluster.snapshot()
    (term,) = info.pod_class.required_affinity_terms
    sums = DomainSums(snapshot)
    sums.add(HOSTNAME, 3, matched_pods(term, snapshot))
    assert sums.few() == {}
    assert sums.totals()[HOSTNAME].tolist() == [3] * 64 + [0]


def test_of_many_domains_those_with_pods_are_refused_whichever_of_many_terms_found_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in (domain_sums, pod_counts):
        monkeypatch.setattr(module, "MANY_DOMAINS", 32)
    names = [f"n{number:02}" for number in range(64)]
    picky = [
        make_pod(f"p-{node}-{app}", node=node, affinity=far(affinity_term(HOSTNAME, selector)))
        for app, selector in (("web", WEB), ("all", label_selector({"tier": "a"})))
        for node in ("n07", "n40")
    ]
    placed = [*picky, make_pod("db-0", labels={"app": "db"}, node="n63")]
    cluster = MirroredCluster([make_node(each) for each in names], placed)
    labels = {"app": "web", "tier": "a"}
    assert set(refused(cluster, make_pod("p", labels=labels)) or ()) == {"n07", "n40"}
    away = far(affinity_term(HOSTNAME, DB))
    assert set(refused(cluster, make_pod("q", affinity=away)) or ()) == {"n63"}


def test_the_pods_of_one_of_many_domains_are_summed_over_all_terms(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in (domain_sums, pod_counts):
        monkeypatch.setattr(module, "MANY_DOMAINS", 32)
    cluster = MirroredCluster(
        [make_node(f"n{number:02}") for number in range(64)],
        [web("n40"), web("n40", name="web-1"), web("n07", name="web-2", priority=9)],
    )
    info, snapshot = cluster.info(make_pod("p", affinity=near(NEAR_WEB))), cluster.snapshot()
    (term,) = info.pod_class.required_affinity_terms
    counts, names = matched_pods(term, snapshot), snapshot.label_column(HOSTNAME).values
    want = {names.get("n07"): 4, names.get("n40"): 8}
    sums = DomainSums(snapshot)
    for weight in (3, 1):
        sums.add(HOSTNAME, weight, counts)
    codes, amounts = sums.few()[HOSTNAME]
    assert dict(zip(codes.tolist(), amounts.tolist(), strict=True)) == want
    for weight in (3, 1):
        sums.add(HOSTNAME, weight, counts)
    total = sums.totals()[HOSTNAME]
    assert {code: int(total[code]) for code in np.flatnonzero(total).tolist()} == want
    assert len(total) == 65


def test_pods_on_a_removed_node_do_not_count() -> None:
    cluster = MirroredCluster(zones(), [web("a1")])
    cluster.remove_node("a1")
    assert refused(cluster, make_pod("p", affinity=far(NEAR_WEB))) == {}


PREFER_WEB = weighted(10, NEAR_WEB)
SCORE_CASES: dict[str, tuple[list[Pod], Pod, Scores | None]] = {
    "no pod has a preference": ([web("a1")], make_pod("p"), None),
    "a preference that no pod meets is skipped": (
        [make_pod("db-0", labels={"app": "db"}, node="a1")],
        make_pod("p", affinity=near(preferred=(PREFER_WEB,))),
        None,
    ),
    # two matching pods in zone a: 2 * 10
    "each matching pod of the domain adds the weight": (
        [web("a1"), web("a2", name="web-1")],
        make_pod("p", affinity=near(preferred=(PREFER_WEB,))),
        {"a1": (20, 100), "a2": (20, 100), "b1": (0, 0), "bare": (0, 0)},
    ),
    "preferred anti-affinity subtracts the weight": (
        [web("a1"), web("a2", name="web-1"), web("b1", name="web-2")],
        make_pod("p", affinity=far(preferred=(PREFER_WEB,))),
        {"a1": (-20, 0), "a2": (-20, 0), "b1": (-10, 50), "bare": (0, 100)},
    ),
    "preferences of placed pods count, for affinity and anti-affinity": (
        [
            web("a1", affinity=near(preferred=(weighted(5, affinity_term(ZONE, DB)),))),
            web(
                "b1",
                name="web-1",
                affinity=far(preferred=(weighted(5, affinity_term(HOSTNAME, DB)),)),
            ),
        ],
        make_pod("p", labels={"app": "db"}),
        {"a1": (5, 100), "a2": (5, 100), "b1": (-5, 0), "bare": (0, 50)},
    ),
    "a placed pod's required affinity counts with the hard weight of 1": (
        [web("a1", affinity=near(affinity_term(ZONE, DB)))],
        make_pod("p", labels={"app": "db"}),
        {"a1": (1, 100), "a2": (1, 100), "b1": (0, 0), "bare": (0, 0)},
    ),
    "weights that cancel out are still scored": (
        [web("a1")],
        make_pod(
            "p",
            affinity=Affinity(
                pod_affinity=PodAffinity((), (PREFER_WEB,)),
                pod_anti_affinity=PodAffinity((), (PREFER_WEB,)),
            ),
        ),
        {"a1": (0, 0), "a2": (0, 0), "b1": (0, 0), "bare": (0, 0)},
    ),
}


@pytest.mark.parametrize("sentence", SCORE_CASES)
def test_a_pod_is_drawn_to_nodes_and_away_from_others(sentence: str) -> None:
    placed, pod, want = SCORE_CASES[sentence]
    assert scored(MirroredCluster(zones(), placed), pod) == want


def test_a_hard_weight_of_zero_ignores_required_affinity_of_placed_pods() -> None:
    placed = web("a1", affinity=near(affinity_term(ZONE, DB)))
    cluster = MirroredCluster(zones(), [placed])
    args = InterPodAffinityArgs(hard_pod_affinity_weight=0)
    assert scored(cluster, make_pod("p", labels={"app": "db"}), args) is None


def test_preferences_of_placed_pods_can_be_ignored_for_pods_without_preferences() -> None:
    placed = web("a1", affinity=near(preferred=(weighted(5, affinity_term(ZONE, DB)),)))
    cluster = MirroredCluster(zones(), [placed])
    args = InterPodAffinityArgs(ignore_preferred_terms_of_existing_pods=True)
    assert scored(cluster, make_pod("p", labels={"app": "db"}), args) is None
    choosy = make_pod("q", labels={"app": "db"}, affinity=near(preferred=(PREFER_WEB,)))
    # own preference 10, the placed pod's 5: both count once the pod has preferences
    assert scored(cluster, choosy, args) == {
        "a1": (15, 100),
        "a2": (15, 100),
        "b1": (0, 0),
        "bare": (0, 0),
    }


def test_normalising_no_scores_returns_no_scores() -> None:
    cluster = MirroredCluster(zones())
    none = cluster.snapshot().view(np.empty(0, dtype=np.int64))
    no_scores = np.empty(0, dtype=np.int64)
    info = cluster.info(make_pod("p"))
    assert InterPodAffinity().normalize_score(CycleState(), info, none, no_scores).tolist() == []


ARGS_CASES = {
    "an empty entry means the defaults": ({}, []),
    "the weight may be 100": ({"hardPodAffinityWeight": 100}, []),
    "the weight may not be 101": (
        {"hardPodAffinityWeight": 101},
        ["args.hardPodAffinityWeight: 101 (expected a whole number from 0 to 100)"],
    ),
    "the weight may not be negative": (
        {"hardPodAffinityWeight": -1},
        ["args.hardPodAffinityWeight: -1 (expected a whole number from 0 to 100)"],
    ),
}


@pytest.mark.parametrize("sentence", ARGS_CASES)
def test_an_invalid_argument_is_named_with_what_is_expected(sentence: str) -> None:
    given, want = ARGS_CASES[sentence]
    _, errors = decode_args(InterPodAffinityArgs, given, "args")
    assert [str(error) for error in errors] == want


_requirements = st.builds(
    Requirement,
    st.sampled_from("ab"),
    st.sampled_from((Operator.IN, Operator.NOT_IN)),
    st.lists(st.sampled_from("xyz"), min_size=1, max_size=2, unique=True).map(
        lambda values: tuple(sorted(values))
    ),
) | st.builds(Requirement, st.sampled_from("ab"), st.sampled_from((Operator.EXISTS,)))


@given(
    st.lists(st.lists(_requirements, max_size=3), max_size=4),
    st.dictionaries(st.sampled_from("ab"), st.sampled_from("xyz")),
)
def test_the_conjunction_of_selectors_matches_what_all_of_them_match(
    parts: list[list[Requirement]], labels: dict[str, str]
) -> None:
    selectors = tuple(EVERYTHING.with_requirements(part) for part in parts)
    wanted = all(selector.matches(labels) for selector in selectors)
    assert _conjunction(selectors).matches(labels) == wanted
    assert not _conjunction((*selectors, NOTHING)).matches(labels)
