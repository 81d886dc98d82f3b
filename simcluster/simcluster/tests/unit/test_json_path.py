"""JSON paths of printer columns."""

from typing import Any

import pytest

from simcluster.store.json_path import JsonPathError, compile_path

OBJECT: dict[str, Any] = {
    "spec": {"size": 3, "a.b": "dotted", "list": [{"x": 1}, {"x": 2}]},
    "status": {
        "conditions": [
            {"type": "Ready", "status": "True"},
            {"type": "Synced", "status": "False"},
        ]
    },
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".spec.size", [3]),
        (".spec.nosuch.deeper", []),
        (".spec.list[0].x", [1]),
        (".spec.list[-1].x", [2]),
        (".spec.list[5].x", []),
        (".spec.list[*].x", [1, 2]),
        (r".spec.a\.b", ["dotted"]),
        (".spec['a.b']", ["dotted"]),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".status.conditions[?(@.type != 'Ready')].status", ["False"]),
    ],
)
def test_paths_find_existing_values(path: str, found: list[object]) -> None:
    assert compile_path(path)(OBJECT) == found


def test_a_malformed_path_is_refused() -> None:
    with pytest.raises(JsonPathError, match=r"unexpected 'spec'"):
        compile_path("spec")
