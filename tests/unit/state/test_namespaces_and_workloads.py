"""Labels of namespaces, and selectors of Services and controllers."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from stowage.api.objects.meta import LabelSelector
from stowage.api.values.selectors import compile_label_selector, selector_from_labels
from stowage.state.namespaces import Namespaces
from stowage.state.workloads import Workloads
from tests.support.builders import label_selector, make_namespace

LABELS = st.dictionaries(st.sampled_from("kl"), st.sampled_from("xy"))
TEAM_X = selector_from_labels({"team": "x"})


def test_namespaces_are_found_by_label() -> None:
    namespaces = Namespaces()
    namespaces.update(make_namespace("red", labels={"team": "x"}))
    namespaces.update(make_namespace("blue", labels={"team": "y"}))
    assert namespaces.matching(TEAM_X) == {"red"}
    namespaces.update(make_namespace("blue", labels={"team": "x"}))
    assert namespaces.matching(TEAM_X) == {"red", "blue"}
    namespaces.remove("red")
    assert namespaces.matching(TEAM_X) == {"blue"}


def test_a_namespace_that_is_not_known_has_no_labels() -> None:
    assert dict(Namespaces().labels("nowhere")) == {}


def test_equal_results_are_the_same_object() -> None:
    namespaces = Namespaces()
    namespaces.update(make_namespace("red", labels={"team": "x"}))
    first = namespaces.matching(TEAM_X)
    namespaces.update(make_namespace("blue", labels={"team": "y"}))
    assert namespaces.matching(TEAM_X) is first


def test_the_generation_grows_only_with_changes() -> None:
    namespaces = Namespaces()
    assert namespaces.update(make_namespace("red"))
    generation = namespaces.generation
    assert not namespaces.update(make_namespace("red"))
    assert not namespaces.remove("blue")
    assert namespaces.generation == generation
    assert namespaces.matching(compile_label_selector(label_selector())) == {"red"}


def test_workloads_are_kept_by_kind_and_namespace() -> None:
    workloads = Workloads()
    selector = label_selector({"app": "a"})
    assert workloads.update("Service", "red", "web", selector)
    assert not workloads.update("Service", "red", "web", selector)
    assert workloads.update("Service", "red", "headless", None)
    assert workloads.selector_of("Service", "red", "web") == selector
    assert workloads.selector_of("ReplicaSet", "red", "web") is None
    assert dict(workloads.in_namespace("Service", "red")) == {"web": selector, "headless": None}
    assert workloads.remove("Service", "red", "web")
    assert not workloads.remove("Service", "red", "web")
    assert workloads.generation == 3


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["Service", "ReplicaSet"]),
            st.sampled_from(["red", "blue"]),
            st.sampled_from("abc"),
            st.none() | st.just("gone") | LABELS,
        ),
        max_size=12,
    ),
    LABELS,
)
def test_the_selectors_of_a_pod_are_those_whose_labels_it_has(
    writes: list[tuple[str, str, str, dict[str, str] | str | None]], labels: dict[str, str]
) -> None:
    workloads = Workloads()
    twin: dict[tuple[str, str, str], LabelSelector | None] = {}
    for kind, namespace, name, written in writes:
        if written == "gone":
            workloads.remove(kind, namespace, name)
            twin.pop((kind, namespace, name), None)
        else:
            selector = label_selector(written) if isinstance(written, dict) else None
            workloads.update(kind, namespace, name, selector)
            twin[kind, namespace, name] = selector
        for home in (("Service", "red"), ("ReplicaSet", "blue")):
            found = [each.match_labels for each in workloads.selecting(*home, labels)]
            wanted = [
                each.match_labels
                for key, each in twin.items()
                if key[:2] == home and each and each.match_labels.items() <= labels.items()
            ]
            assert sorted(found, key=str) == sorted(wanted, key=str)


class _OpenNamespaces(Namespaces):
    @property
    def num_rows(self) -> int:
        return len(self._names)


def test_namespaces_that_come_and_go_need_no_more_room() -> None:
    namespaces = _OpenNamespaces()
    namespaces.update(make_namespace("stays", labels={"team": "x"}))
    before = namespaces.num_rows
    for number in range(10 * before):
        name = f"ns{number}"
        namespaces.update(make_namespace(name, labels={"team": "x"}))
        assert namespaces.matching(TEAM_X) == {"stays", name}
        namespaces.remove(name)
    assert namespaces.matching(TEAM_X) == {"stays"}
    assert namespaces.num_rows == before
