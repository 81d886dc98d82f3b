"""An engine with the default plugins, and the nodes that are searched for devices."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from stowage.engine import Engine
from stowage.plugins.dynamic_resources.allocator import NodeSearch, Solution
from stowage.state.devices.pool import Pool
from tests.support.engines import default_engine


@pytest.fixture
def engine() -> Iterator[Engine]:
    """An engine with the default profile; of nodes with equal scores it takes the first."""
    built = default_engine()
    yield built
    built.validate()


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The nodes that were searched, one after the other."""
    found: list[str] = []
    run = NodeSearch.run

    def noting(
        search: NodeSearch, pools: tuple[Pool, ...], node_name: str, labels: dict[str, str]
    ) -> Solution | None:
        found.append(node_name)
        return run(search, pools, node_name, labels)

    monkeypatch.setattr(NodeSearch, "run", noting)
    return found
