"""Tables in the documents equal the data they show, and list the Events of the code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from docs.tables import TABLES, pages, with_tables
from tests.docs.pages import DOCS, ROOT

PACKAGE = ROOT / "scheduler" / "stowage"


def test_every_table_is_on_one_page() -> None:
    texts = [page.read_text(encoding="utf-8") for page in pages()]
    named = [name for text in texts for name in re.findall(r"<!-- table: ([\w ]+) -->", text)]
    assert sorted(named) == sorted(TABLES)


def test_tables_equal_the_output_of_docs_tables() -> None:
    stale = [
        page.name
        for page in pages()
        if (text := page.read_text(encoding="utf-8")) != with_tables(text)
    ]
    assert stale == [], "run `make docs`"


def _reasons() -> Iterator[str]:
    """The reasons of Events: only their calls have a constant `reason`."""
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                given = [each.value for each in node.keywords if each.arg == "reason"]
                yield from (str(each.value) for each in given if isinstance(each, ast.Constant))


def test_the_table_of_events_lists_the_reasons_in_the_code() -> None:
    page = (DOCS / "reference" / "events.md").read_text(encoding="utf-8")
    described = re.findall(r"^\| `(\w+)` \| (?:Normal|Warning) \|", page, re.MULTILINE)
    assert set(described) == set(_reasons())
