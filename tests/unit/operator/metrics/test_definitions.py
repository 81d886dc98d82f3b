"""Each defined metric is collected somewhere, so that the table of metrics is true."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import stowage.operator
from stowage.operator.metrics import definitions, own_definitions
from stowage.operator.metrics.definition import Definition

SHELL = Path(stowage.operator.__file__).parent
DEFINED = {
    name
    for module in (definitions, own_definitions)
    for name, value in vars(module).items()
    if isinstance(value, Definition)
}


def names_read(module: Path) -> set[str]:
    """Names and attributes that the code of a module reads."""
    return {
        node.id if isinstance(node, ast.Name) else node.attr
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8")))
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load)
    }


def test_every_metric_is_read_by_a_collector() -> None:
    readers = [
        path
        for path in SHELL.rglob("*.py")
        if re.search(r"metrics(\.| import )(own_)?definitions", path.read_text(encoding="utf-8"))
    ]
    assert DEFINED - set().union(*map(names_read, readers)) == set()
