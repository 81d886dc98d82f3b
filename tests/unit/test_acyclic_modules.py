"""The import-linter contract against import cycles finds the cycles that it should."""

from itertools import pairwise

import pytest
from grimp import ImportGraph

from tests.support.acyclic_modules import find_cycle


def _graph(*imports: str) -> ImportGraph:
    graph = ImportGraph()
    for each in imports:
        importer, imported = each.split(" > ")
        graph.add_import(importer=importer, imported=imported)
    return graph


@pytest.mark.parametrize(
    ("imports", "cycle"),
    [
        pytest.param(("p.a > p.b", "p.b > p.c", "p.a > p.c"), None, id="a diamond"),
        pytest.param(("p.a > p.b", "p.b > p.a"), {"p.a", "p.b"}, id="two modules"),
        pytest.param(
            ("p.a > p.b", "p.b > p.q.c", "p.q.c > p.a", "p.a > p.d"),
            {"p.a", "p.b", "p.q.c"},
            id="three modules of two packages",
        ),
    ],
)
def test_a_cycle_is_found_wherever_it_is(imports: tuple[str, ...], cycle: set[str] | None) -> None:
    found = find_cycle(_graph(*imports))
    assert (set(found) if found else None) == cycle


def test_each_module_of_the_cycle_is_followed_by_one_that_it_imports() -> None:
    graph = _graph("p.a > p.b", "p.b > p.c", "p.c > p.a")
    found = find_cycle(graph)
    assert found is not None
    assert found[0] == found[-1]
    for importer, imported in pairwise(found):
        assert graph.direct_import_exists(importer=importer, imported=imported)
