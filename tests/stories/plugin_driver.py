"""An engine driver with plugins of the test and the handle that the plugins get."""

from __future__ import annotations

from functools import partial
from typing import Any

from stowage.api.events import Event
from stowage.api.instructions import Instruction
from stowage.framework import Handle
from stowage.framework.extension_points import Plugin
from tests.support.engines import bare_engine
from tests.support.models.engine_driver import EngineDriver

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
