"""A reflector of nodes that gets scripted answers, and notes what it does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from stowage.api.events import (
    Event,
    NodeGone,
    NodeSeen,
    ObjectInvalid,
)
from stowage.api.objects.node import Node
from stowage.api.reflected_kinds import NODES
from stowage.operator.inbox import Inbox
from stowage.operator.watch.reflector import Reflector
from tests.support.fake_api import FakeApiClient, FakeTime, Request

GONE = {"kind": "Status", "status": "Failure", "reason": "Expired", "code": 410}


def node_json(name: str, uid: str = "", version: int = 1, **status: Any) -> dict[str, Any]:
    """A Node as the API server writes it."""
    metadata = {"name": name, "uid": uid or f"uid-{name}", "resourceVersion": str(version)}
    return {"metadata": metadata, "status": status}


def pod_json(name: str, uid: str, version: int = 1) -> dict[str, Any]:
    """A Pod on a node as the API server writes it."""
    metadata = {"namespace": "d", "name": name, "uid": uid, "resourceVersion": str(version)}
    return {"metadata": metadata, "spec": {"nodeName": "n"}}


def list_json(*nodes: dict[str, Any], version: int = 10, more: str = "") -> dict[str, Any]:
    """A page of a list; `more` is its continue token."""
    return {"metadata": {"resourceVersion": str(version), "continue": more}, "items": list(nodes)}


def watch_line(change: str, found: dict[str, Any]) -> bytes:
    """A line of a watch."""
    return msgspec.json.encode({"type": change, "object": found}) + b"\n"


def brief(event: Event) -> str:
    """``+name`` for a node that was seen, ``-name`` for one that is gone, ``!name field``."""
    match event:
        case NodeSeen():
            return f"+{event.node.metadata.name}"
        case NodeGone():
            return f"-{event.name}"
        case ObjectInvalid():
            return f"!{event.name} {event.field}"
        case _:
            return repr(event)


class ScriptedReflector:
    """A reflector of nodes that runs until the scripted answers are used up."""

    def __init__(self, lists: list[Any], watches: list[list[Any]]) -> None:
        self.inbox = Inbox()
        self.time = FakeTime()
        self.silences: list[float] = []
        # The watch after the last scripted one ends the run.
        self.client = FakeApiClient(get=lists, watch=[*watches, [EndOfScript()]])
        clock = replace(self.time.clock, sleep=self._sleep)
        self.reflector: Reflector[Node] = Reflector(NODES, self.client, self.inbox, clock)

    async def _sleep(self, seconds: float) -> None:
        await self.time.sleep(seconds)

    def passes(self, seconds: float) -> Callable[[], None]:
        """Part of the script of a watch: nothing comes for that long."""

        def pass_time() -> None:
            self.time.now += seconds

        return pass_time

    def note_silence(self) -> None:
        """Part of the script of a watch: note how long the reflector has heard nothing."""
        self.silences.append(self.reflector.idle_s)

    async def arrived(self) -> list[str]:
        """Run to the end of the script; what the events are about."""
        with pytest.raises(EndOfScript):
            await self.reflector.run()
        return [brief(event) for event in self.inbox.drain(limit=100)]

    def watched_from(self) -> list[str]:
        """The versions from which it watched."""
        return [request.params["resourceVersion"] for request in self.requests("WATCH")]

    def requests(self, method: str) -> list[Request]:
        """The requests of a method."""
        return self.client.sent(method)


class EndOfScript(Exception):  # noqa: N818 - not an error
    """The scripted answers are used up."""
