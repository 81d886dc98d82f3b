"""Only selectors that may match a pod are evaluated."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from stowage.api.values.selectors import (
    NOTHING,
    Operator,
    Requirement,
    Selector,
    selector_from_labels,
)
from stowage.state.pods.selector_buckets import SelectorBuckets

labels = st.dictionaries(st.sampled_from("abc"), st.sampled_from("xyz"))
requirements = st.one_of(
    st.builds(
        Requirement,
        st.sampled_from("abc"),
        st.sampled_from([Operator.IN, Operator.NOT_IN]),
        st.lists(st.sampled_from("xyz"), min_size=1, max_size=2, unique=True).map(tuple),
    ),
    st.builds(
        Requirement,
        st.sampled_from("abc"),
        st.sampled_from([Operator.EXISTS, Operator.DOES_NOT_EXIST]),
    ),
)
selectors = st.one_of(
    st.just(NOTHING), st.lists(requirements, max_size=3).map(lambda each: Selector(tuple(each)))
)
homes = st.sampled_from([(None,), ("red",), ("red", "blue"), ()])


def test_selectors_for_other_apps_are_not_evaluated() -> None:
    buckets: SelectorBuckets[str] = SelectorBuckets()
    for number in range(100):
        selector = selector_from_labels({"app": f"a{number}", "tier": "web"})
        buckets.add(f"s{number}", selector, ("red",))
    found = list(buckets.candidates("red", {"app": "a7", "tier": "web"}))
    assert "s7" in found
    assert len(found) <= 2


def test_the_label_with_the_fewest_selectors_decides_whatever_the_labels_are_called() -> None:
    buckets: SelectorBuckets[str] = SelectorBuckets()
    for number in range(100):
        selector = selector_from_labels({"a-tier": "web", "z-app": f"a{number}"})
        buckets.add(f"s{number}", selector, ("red",))
    found = list(buckets.candidates("red", {"a-tier": "web", "z-app": "a7"}))
    assert "s7" in found
    assert len(found) <= 2


def test_selectors_for_labels_that_a_pod_lacks_are_not_evaluated() -> None:
    buckets: SelectorBuckets[str] = SelectorBuckets()
    for number in range(100):
        key = f"key-{number}"
        exists = Selector((Requirement(key, Operator.EXISTS),))
        one_of_two = Selector((Requirement(key, Operator.IN, ("x", "y")),))
        buckets.add(f"exists-{number}", exists, ("red",))
        buckets.add(f"in-{number}", one_of_two, ("red",))
    assert set(buckets.candidates("red", {"key-7": "y"})) == {"exists-7", "in-7"}


@settings(deadline=None)
@given(st.lists(st.tuples(selectors, homes), max_size=8), labels, st.data())
def test_every_selector_that_matches_is_evaluated(
    added: list[tuple[Selector, tuple[str | None, ...]]],
    pod_labels: dict[str, str],
    data: st.DataObject,
) -> None:
    buckets: SelectorBuckets[int] = SelectorBuckets()
    for number, (selector, namespaces) in enumerate(added):
        buckets.add(number, selector, namespaces)
    gone = data.draw(st.sets(st.sampled_from(range(len(added))))) if added else set()
    for number in gone:
        buckets.discard(number, *added[number])
    found = list(buckets.candidates("red", pod_labels))
    assert len(found) == len(set(found))
    assert gone.isdisjoint(found)
    for number, (selector, namespaces) in enumerate(added):
        meant = None in namespaces or "red" in namespaces
        if number not in gone and meant and selector.matches(pod_labels):
            assert number in found
