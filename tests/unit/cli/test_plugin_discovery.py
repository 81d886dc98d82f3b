"""Plugins of installed packages: discovery by entry point, and broken plugins."""

from __future__ import annotations

import re
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from stowage.cli.plugin_discovery import GROUP, discover_plugins
from stowage.framework import Handle, PluginUnusable, Registry
from stowage.plugins import in_tree_registry

MODULE = """
class Own:
    name = "Own"

    def __init__(self, handle):
        self.handle = handle

    def score_node(self, pod, node):
        return 0


class Idle:
    name = "Idle"
"""


@pytest.fixture(autouse=True)
def _package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module that entry points can refer to."""
    (tmp_path / "own_plugins.py").write_text(MODULE)
    (tmp_path / "broken_plugins.py").write_text("import no_such_module\n")
    monkeypatch.syspath_prepend(str(tmp_path))


def _discover(*offers: tuple[str, str], handle: Handle | None = None) -> Registry:
    offered = [EntryPoint(name, value, GROUP) for name, value in offers]
    return discover_plugins(handle, offered=offered)


def test_plugins_of_packages_are_added_to_the_in_tree_plugins() -> None:
    registry = _discover(("Own", "own_plugins:Own"))
    assert set(registry) == {*in_tree_registry(), "Own"}
    assert registry.faults == {}


def test_a_plugin_gets_the_handle_of_its_scheduler() -> None:
    handle = Handle()
    factory = _discover(("Own", "own_plugins:Own"), handle=handle)["Own"]
    plugin = factory.construct(factory.args())
    assert plugin.authored.handle is handle  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("Own", "broken_plugins:Own", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("Own", "own_plugins:Absent", "AttributeError: .*Absent"),
        ("Own", "own_plugins", "expected a class"),
        ("Other", "own_plugins:Own", "calls itself 'Own', expected name = 'Other'"),
        ("NodeName", "own_plugins:Own", "that of a plugin of the scheduler itself"),
    ],
)
def test_an_unusable_entry_point_is_a_fault_with_its_name(
    name: str, value: str, words: str
) -> None:
    registry = _discover((name, value))
    assert list(registry.faults) == [name]
    where = re.escape(f"entry point {name} = {value} of an unknown package: ")
    assert re.match(f"{where}.*{words}", registry.faults[name])
    assert set(registry) == set(in_tree_registry())


def test_two_plugins_with_the_same_name_are_both_refused() -> None:
    registry = _discover(("Own", "own_plugins:Own"), ("Own", "other_plugins:Own"))
    assert "Own" not in registry
    assert "2 packages offer a plugin of that name" in registry.faults["Own"]
    assert "other_plugins:Own" in registry.faults["Own"]
    assert "own_plugins:Own" in registry.faults["Own"]


def test_the_error_of_an_unusable_plugin_names_its_entry_point() -> None:
    factory = _discover(("Idle", "own_plugins:Idle"))["Idle"]
    with pytest.raises(PluginUnusable, match="entry point Idle = own_plugins:Idle of an unknown"):
        factory.construct(factory.args())
