"""An engine driver with plugins of the test and the handle that the plugins get."""

from __future__ import annotations

from functools import partial
from typing import Any

from stowage.api.events import Event
from stowage.api.instructions import Instruction
from stowage.api.status import unschedulable
from stowage.framework import Handle, PreFilterResult
from stowage.framework.extension_points import Plugin
from tests.support.engines import bare_engine
from tests.support.models.engine_driver import EngineDriver
from tests.support.plugins.scripted_plugin import ScriptedPlugin

SCHEDULER = "test"
"""The scheduler name of the profile of `framework_of`."""


class PluginDriver(EngineDriver):
    """An engine with these plugins only; the pods it creates name its profile.

    Args:
        plugins: All plugins of the profile but PrioritySort and DefaultBinder.
        handle: Is connected to the engine; `deliver_requests` passes its requests on.
    """

    def __init__(self, *plugins: Plugin, handle: Handle | None = None) -> None:
        super().__init__(partial(bare_engine, *plugins))
        self.requests: list[Event] = []
        if handle is not None:
            handle.connect(self.requests.append, self.engine.waiting_pods)

    def create_pods(self, *names: str, **fields: Any) -> list[Instruction]:
        return super().create_pods(*names, scheduler_name=SCHEDULER, **fields)

    def deliver_requests(self) -> list[Instruction]:
        """Pass the engine the requests that plugins made through the handle."""
        events, self.requests[:] = tuple(self.requests), []
        return self.handle(*events)


def driver_of_pod(*plugins: Plugin, handle: Handle | None = None) -> PluginDriver:
    """A driver whose pod `p` has been tried on the only node, `n`."""
    driver = PluginDriver(*plugins, handle=handle)
    driver.add_nodes("n")
    driver.create_pods("p")
    driver.schedule()
    return driver


def driver_with_refused_pod(first: Plugin) -> PluginDriver:
    """A driver that refused the pod `q`, and then tried the pod `p` with the plugin `first`."""
    driver = PluginDriver(first, full(only="q"))
    driver.add_nodes("n")
    driver.create_pods("q")
    driver.schedule()
    driver.create_pods("p")
    driver.schedule(1)
    return driver


def full(**more: Any) -> ScriptedPlugin:
    """A plugin ``Full`` that refuses every pod at PreFilter, or the one named by ``only``."""
    return ScriptedPlugin("Full", {"pre_filter": _refusing}, **more)


def _refusing(*_args: Any) -> PreFilterResult:
    return PreFilterResult(unschedulable("full"))
