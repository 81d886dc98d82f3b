"""The topology domains of a label are those that a plain loop over the nodes finds."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from stowage.api.events import NodeGone
from stowage.engine.pod_groups.topology import TopologyDomains, topology_domains
from tests.stories.gang_driver import GangDriver, make_group

#: In the order in which nodes come: the value of the label, None without it.
_values = st.lists(st.sampled_from(["b", "a", "", "c", None]), max_size=40)


def _driver(values: list[str | None]) -> GangDriver:
    driver = GangDriver()
    for number, value in enumerate(values):
        labels = {} if value is None else {"rack": value}
        driver.add_nodes(f"n-{number}", labels=labels)
    return driver


def _found(driver: GangDriver) -> TopologyDomains:
    return topology_domains(driver.engine.state, "default/g", "rack")


def _names(driver: GangDriver, domains: TopologyDomains) -> dict[str, frozenset[str]]:
    snapshot = driver.engine.state.cache.snapshot()
    return {
        value: domains.node_names(index, snapshot) for index, value in enumerate(domains.values)
    }


@settings(max_examples=80, deadline=None)
@given(values=_values, gone=st.sets(st.integers(0, 39)))
def test_each_value_has_its_nodes(values: list[str | None], gone: set[int]) -> None:
    driver = _driver(values)
    _found(driver)  # makes the column, which follows the nodes from then on
    driver.handle(*(NodeGone(f"n-{number}") for number in gone if number < len(values)))
    expected: dict[str, set[str]] = {}
    for number, value in enumerate(values):
        if value is not None and number not in gone:
            expected.setdefault(value, set()).add(f"n-{number}")
    domains = _found(driver)
    assert _names(driver, domains) == expected
    assert list(domains.values) == sorted(expected)
    for index in range(len(domains.values)):
        rows = domains.rows_of(index).tolist()
        assert rows == sorted(rows)


@settings(max_examples=40, deadline=None)
@given(values=_values.filter(lambda values: any(each is not None for each in values)))
def test_with_a_member_on_a_node_its_value_is_the_only_one(values: list[str | None]) -> None:
    driver = _driver(values)
    for number, value in enumerate(values):
        if value is None:
            continue
        driver.show_group(make_group(min_count=1, topology="rack"))
        driver.create_members("p", node=f"n-{number}")
        same = {f"n-{other}" for other, each in enumerate(values) if each == value}
        assert _names(driver, _found(driver)) == {value: same}
        driver.delete("p")
