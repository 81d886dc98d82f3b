"""The lowest free address or port is found, equal to the result of a linear search."""

from hypothesis import given
from hypothesis import strategies as st

from simcluster.clock import Clock
from simcluster.kinds.admission.service_numbers import FreeNumbers
from simcluster.kinds.first_objects import make_first_objects
from simcluster.kinds.resources import SERVICES
from simcluster.store.deletion import DeleteOptions
from simcluster.store.registry import Registry
from simcluster.store.store import Store

NUMBERS = range(10, 18)


@given(st.lists(st.tuples(st.sampled_from(("take", "give back", "look")), st.integers(8, 19))))
def test_free_numbers_are_those_that_are_not_in_use(steps: list[tuple[str, int]]) -> None:
    free, users = FreeNumbers(NUMBERS), dict.fromkeys(range(8, 20), 0)
    for step, number in steps:
        if step == "take":
            free.take(number)
            users[number] += 1
        elif step == "give back" and users[number]:
            free.give_back(number)
            users[number] -= 1
        elif step == "look":
            next(iter(free), None)
        assert list(free) == [each for each in NUMBERS if not users[each]]


def test_a_service_gets_the_lowest_free_address_and_port() -> None:
    registry = Registry(Store(), Clock(lambda: 0.0))
    make_first_objects(registry)

    def made(name: str, **spec: object) -> tuple[str, int]:
        body = {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **spec}}
        found = registry.create(SERVICES, "default", body).obj["spec"]
        return found["clusterIP"], found["ports"][0].get("nodePort", 0)

    assert made("a", type="NodePort") == ("10.96.0.2", 30000)
    assert made("b", clusterIP="10.96.0.4") == ("10.96.0.4", 0)
    assert made("c", type="NodePort") == ("10.96.0.3", 30001)
    assert made("d") == ("10.96.0.5", 0)
    registry.delete(SERVICES, "default", "a", DeleteOptions())
    assert made("e", type="NodePort") == ("10.96.0.2", 30000)
    assert made("f", clusterIP="None") == ("None", 0)
