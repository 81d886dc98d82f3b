"""Plugins are adapted to the protocols of the framework, or refused with the reason."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from stowage.framework import (
    AdaptedPlugin,
    PluginFailed,
    PluginTraits,
    PluginUnusable,
    plugin_factory,
)
from stowage.framework.authoring import (
    SUCCESS,
    CycleState,
    FilterVerdict,
    Handle,
    Int64Array,
    NodeInfo,
    NodeView,
    PluginArgs,
    PodInfo,
    Reads,
    Rejection,
    Status,
    error,
    unresolvable,
    unschedulable,
)
from stowage.framework.extension_points import (
    FilterPlugin,
    NormalizeScorePlugin,
    PermitPlugin,
    PreBindPlugin,
    ReservePlugin,
    ScorePlugin,
)
from tests.support.builders import make_node, make_pod
from tests.support.mirrored_cluster import MirroredCluster
from tests.support.plugins.small_plugins import framework_of
from tests.unit.framework.sample_plugins import Blocking, Bounded, PreferSsd


class FixedFilter:
    """A scalar filter with a fixed answer."""

    name = "FixedFilter"

    def __init__(self, answer: Any = None) -> None:
        self.answer = answer

    def filter_node(self, pod: PodInfo, node: NodeInfo) -> Any:
        return self.answer if node.name == "b" else None


@pytest.fixture
def cluster() -> MirroredCluster:
    """Node a with an SSD, node b with none and a pod that takes a CPU."""
    nodes = [make_node("a", labels={"disk": "ssd"}), make_node("b")]
    return MirroredCluster(nodes, [make_pod("r", cpu="1", node="b")])


def _score(cluster: MirroredCluster, plugin: object) -> dict[str, int]:
    framework, snapshot = framework_of(AdaptedPlugin(plugin)), cluster.snapshot()
    pod = cluster.info(make_pod("p"))
    rows = np.arange(2, dtype=np.int64)
    result = framework.run_score(CycleState(), pod, snapshot, rows)
    return dict(zip(snapshot.node_names, result.total.tolist(), strict=False))


def _refusal_on_b(cluster: MirroredCluster, plugin: object) -> Status:
    framework, snapshot = framework_of(AdaptedPlugin(plugin)), cluster.snapshot()
    result = framework.run_filter(CycleState(), cluster.info(make_pod("p")), snapshot)
    row = snapshot.row_of("b")
    assert row is not None
    return result.status(row)


def test_a_scalar_score_runs_for_each_node(cluster: MirroredCluster) -> None:
    assert _score(cluster, PreferSsd()) == {"a": 100, "b": 0}


def test_undeclared_reads_count_as_everything() -> None:
    plugin = AdaptedPlugin(PreferSsd())
    assert isinstance(plugin, ScorePlugin)
    assert plugin.traits == PluginTraits()


def test_answers_are_cached_according_to_declared_reads() -> None:
    names = [f"n{number:02}" for number in range(50)]
    cluster = MirroredCluster([make_node(name) for name in names])
    asked: list[str] = []

    class Counting(PreferSsd):
        traits = PluginTraits(score_reads=Reads.NODE)

        def score_node(self, pod: PodInfo, node: NodeInfo) -> int:
            asked.append(node.name)
            return super().score_node(pod, node)

    framework = framework_of(AdaptedPlugin(Counting()))
    rows = np.arange(len(names), dtype=np.int64)
    for pod in [cluster.info(make_pod(name)) for name in ("p", "q")]:
        framework.run_score(CycleState(), pod, cluster.snapshot(), rows)
    assert sorted(asked) == names


def test_a_score_that_is_no_whole_number_is_an_error_with_the_plugin_name(
    cluster: MirroredCluster,
) -> None:
    class Half:
        name = "Half"

        def score_node(self, pod: PodInfo, node: NodeInfo) -> float:
            return 0.5

    with pytest.raises(PluginFailed, match=r'"Half".*float'):
        _score(cluster, Half())


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (None, SUCCESS),
        (SUCCESS, SUCCESS),
        ("no", unschedulable("no", plugin="FixedFilter")),
        (unschedulable("no", "never"), unschedulable("no", "never", plugin="FixedFilter")),
        (unresolvable("never"), unresolvable("never", plugin="FixedFilter")),
    ],
)
def test_a_scalar_filter_returns_none_a_reason_or_a_status(
    cluster: MirroredCluster, answer: object, expected: Status
) -> None:
    assert _refusal_on_b(cluster, FixedFilter(answer)) == expected


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (True, "answered True for node b"),
        ("", "answered '' for node b"),
        (unschedulable(), "no reason given for Unschedulable on b"),
        (error("disk on fire"), "disk on fire"),
    ],
)
def test_an_invalid_answer_of_a_scalar_filter_is_an_error(
    cluster: MirroredCluster, answer: object, message: str
) -> None:
    with pytest.raises(PluginFailed, match=message):
        _refusal_on_b(cluster, FixedFilter(answer))


def test_a_node_has_resources_and_pods(cluster: MirroredCluster) -> None:
    seen: dict[str, tuple[int, int, list[str], set[str]]] = {}

    class Looks:
        name = "Looks"

        def filter_node(self, pod: PodInfo, node: NodeInfo) -> None:
            assert len(node.allocatable) == len(dict(node.allocatable))
            pods = [each.name for each in node.pods]
            named = {"cpu", "example.com/none"} & set(node.allocatable)
            seen[node.name] = (node.allocatable["cpu"], node.requested["cpu"], pods, named)
            assert node.allocatable.get("example.com/none") is None
            with pytest.raises(KeyError, match=r"example\.com/none"):
                node.requested["example.com/none"]

    assert _refusal_on_b(cluster, Looks()).is_success
    assert seen == {"a": (4000, 0, [], {"cpu"}), "b": (4000, 1000, ["r"], {"cpu"})}


def test_the_vectorised_filter_takes_precedence_over_the_scalar_one(
    cluster: MirroredCluster,
) -> None:
    class Both(FixedFilter):
        traits = PluginTraits(filter_reads=Reads.NODE)

        def filter(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> FilterVerdict:
            return FilterVerdict((Rejection("all at once", nodes.exists),))

    assert _refusal_on_b(cluster, Both("one by one")).reasons == ("all at once",)


def test_a_scalar_score_can_be_normalised(cluster: MirroredCluster) -> None:
    class Ranks(PreferSsd):
        def normalize_score(
            self, state: CycleState, pod: PodInfo, nodes: NodeView, scores: Int64Array
        ) -> Int64Array:
            return 100 - scores

    assert isinstance(AdaptedPlugin(Ranks()), NormalizeScorePlugin)
    assert _score(cluster, Ranks()) == {"a": 0, "b": 100}


def test_a_plugin_implements_only_the_protocols_of_its_methods() -> None:
    plugin = AdaptedPlugin(FixedFilter())
    assert isinstance(plugin, FilterPlugin)
    assert not isinstance(plugin, ScorePlugin | PermitPlugin | PreBindPlugin | ReservePlugin)


def test_members_that_protocols_require_are_added() -> None:
    class Books:
        name = "Books"

        def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
            return SUCCESS

        async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
            return SUCCESS

    plugin = AdaptedPlugin(Books())
    assert isinstance(plugin, ReservePlugin)
    assert isinstance(plugin, PreBindPlugin)
    pod = MirroredCluster([]).info(make_pod("p"))
    assert plugin.pre_bind_pre_flight(CycleState(), pod, "n") == SUCCESS
    plugin.unreserve(CycleState(), pod, "n")
    assert asyncio.run(plugin.pre_bind(CycleState(), pod, "n")) == SUCCESS


def test_a_constructor_gets_args_and_handle_if_it_has_these_parameters() -> None:
    class Wants(Bounded):
        name = "Wants"

        def __init__(self, args: Bounded.Args, handle: Handle) -> None:
            super().__init__(args)
            self.handle = handle

    handle = Handle()
    factory = plugin_factory(Wants, handle=handle)
    plugin = factory.construct(factory.args())
    assert isinstance(plugin, AdaptedPlugin)
    assert plugin.authored.handle is handle
    assert plugin.authored.args == Bounded.Args(max_pods=1)


def test_a_function_may_construct_the_plugin() -> None:
    def make() -> FixedFilter:
        return FixedFilter("no")

    factory = plugin_factory(make, name="FixedFilter")
    assert factory.construct(factory.args()).name == "FixedFilter"


class _Nameless:
    def score_node(self, pod: PodInfo, node: NodeInfo) -> int:
        return 0


class _Idle:
    name = "Idle"

    def scoreNode(self, pod: PodInfo, node: NodeInfo) -> int:  # noqa: N802 - the error under test
        return 0


class _Awaiting:
    name = "Awaiting"

    async def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, float]:
        return SUCCESS, 0.0


class _Reading(PreferSsd):
    traits = {"score_reads": Reads.NODE}  # noqa: RUF012 - the error under test


class _Misspelt(PreferSsd):
    trait = PluginTraits()


class _Bare(PreferSsd):
    row_local = True


class _BareMisspelt(PreferSsd):
    score_read = Reads.NODE


class _Even(PreferSsd):
    traits = PluginTraits(rejects_per_class=True, pre_enqueue_per_class=True)


class _Greedy(PreferSsd):
    def __init__(self, client: object) -> None:
        self.client = client


class _Forgetful(PreferSsd):
    Args = Bounded.Args


class _Unset(PreferSsd):
    class Args(PluginArgs):
        key: str

    def __init__(self, args: Args) -> None:
        self.args = args


class _Loose(PreferSsd):
    Args = dict

    def __init__(self, args: dict[str, Any]) -> None:
        self.args = args


class _Explodes(PreferSsd):
    def __init__(self) -> None:
        raise RuntimeError("no licence")


class _Valued:
    name = "Valued"
    score_node = 7


@pytest.mark.parametrize(
    ("made_by", "message"),
    [
        (_Nameless, "its name is None, expected text"),
        (_Idle, "takes part in no extension point.*score_node"),
        (Blocking, "its pre_bind is of the wrong kind, expected async def"),
        (_Awaiting, "its permit is of the wrong kind, expected def"),
        (_Reading, "its traits is {.*}, expected a PluginTraits"),
        (_Misspelt, "its trait is a PluginTraits, expected the name traits"),
        (_Bare, "its row_local is not read, .* PluginTraits.filters_what_ifs=True"),
        (_BareMisspelt, "its score_read is not read, .* PluginTraits.score_reads=Reads.NODE"),
        (_Greedy, "its constructor wants client, expected no other"),
        (_Forgetful, "a parameter args and an attribute Args, or neither"),
        (_Unset, "no default for key"),
        (_Loose, "its Args is .*dict.*, expected a subclass of PluginArgs"),
        (_Explodes, "its constructor raised RuntimeError: no licence"),
        (_Valued, "its score_node is 7, expected a method"),
        (7, "it is 7, expected a class"),
    ],
)
def test_an_unusable_plugin_is_refused_with_the_reason(made_by: Any, message: str) -> None:
    def make() -> None:
        factory = plugin_factory(made_by)
        factory.construct(factory.args())

    with pytest.raises(PluginUnusable, match=message):
        make()


def test_a_plugin_keeps_the_traits_its_author_declares() -> None:
    factory = plugin_factory(_Even)
    assert factory.construct(factory.args()).traits is _Even.traits


def test_a_filter_of_single_nodes_filters_what_ifs() -> None:
    assert AdaptedPlugin(FixedFilter()).traits == PluginTraits(filters_what_ifs=True)


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ({"row_local": True}, "row_local"),
        ({"filter_reads": "node"}, "PluginTraits.filter_reads is 'node', expected a Reads"),
        ({"rejects_per_class": 1}, "PluginTraits.rejects_per_class is 1, expected a bool"),
    ],
)
def test_traits_with_an_unknown_field_or_a_wrong_type_are_refused(
    field: dict[str, Any], message: str
) -> None:
    with pytest.raises(TypeError, match=message):
        PluginTraits(**field)


def _make_prefer_ssd() -> PreferSsd:
    return PreferSsd()


@pytest.mark.parametrize("made_by", [PreferSsd, _make_prefer_ssd])
def test_a_plugin_must_have_the_name_it_is_registered_under(made_by: Callable[[], object]) -> None:
    with pytest.raises(PluginUnusable, match="calls itself 'PreferSsd', expected name = 'Other'"):
        plugin_factory(made_by, name="Other").construct(None)


def test_a_flag_of_the_plugin_itself_is_no_misspelt_trait() -> None:
    class Own(PreferSsd):
        reads_cache = True

    factory = plugin_factory(Own)
    assert isinstance(factory.construct(factory.args()), ScorePlugin)
