"""The plugin in docs/reference/plugin-api.md that waits for objects of a kind of its own works."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from stowage.api.events import CustomObjectSeen
from stowage.api.instructions import BindPod, PatchPodStatus
from stowage.framework import plugin_factory
from stowage.framework.profile.registry import NoArgs
from tests.stories.plugin_driver import PluginDriver
from tests.support.engines import of_type

PAGE = Path(__file__).parents[2] / "docs/reference/plugin-api.md"


def _harbour(*, is_open: bool) -> CustomObjectSeen:
    metadata = {"namespace": "default", "name": "main", "resourceVersion": str(int(is_open))}
    found = {"metadata": metadata, "spec": {"open": is_open}}
    return CustomObjectSeen("harbours.v1.example.com", found)


def test_the_plugin_of_the_page_waits_for_a_custom_object() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)
    driver = PluginDriver(plugin_factory(names["OpeningHours"]).construct(NoArgs()))
    driver.add_nodes("n")
    driver.handle(_harbour(is_open=False))
    driver.create_pods("p")
    (patch,) = of_type(PatchPodStatus, driver.schedule())
    assert "the harbour is closed" in patch.message
    driver.handle(_harbour(is_open=True))
    driver.advance(60)
    assert [each.pod.name for each in of_type(BindPod, driver.schedule())] == ["p"]
