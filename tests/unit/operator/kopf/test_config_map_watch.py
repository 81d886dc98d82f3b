"""A list without the ConfigMap of the configuration says that it is missing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiohttp.test_utils import make_mocked_request

from stowage.operator.client.connection import Connection
from stowage.operator.client.timeouts import Timeouts
from stowage.operator.configuration.config_map import ConfigMapReference
from stowage.operator.configuration.live_configuration import LiveConfiguration
from stowage.operator.kopf import config_map_watch
from stowage.operator.kopf.config_map_watch import ConfigMapWatch
from stowage.operator.kopf.runner import WatchSpec
from tests.support.fake_api import FakeTime

PATH = "/api/v1/namespaces/team/configmaps"
EMPTY, FOUND = b'{"items":[]}', b'{"items":[{"metadata":{"name":"config"}}]}'


class _Configuration:
    """Counts how often the ConfigMap was missing."""

    num_missing = 0

    def handle_missing(self) -> None:
        self.num_missing += 1

    def handle_event(self, _kind: str | None, _found: dict[str, Any]) -> None:
        """Take an event."""


class _Answer:
    def __init__(self, body: bytes, *, ok: bool) -> None:
        self.ok = ok
        self._body = body

    async def read(self) -> bytes:
        return self._body


@pytest.mark.parametrize(
    ("path", "body", "ok", "num_missing"),
    [
        (PATH, EMPTY, True, 1),
        (PATH, FOUND, True, 0),
        (PATH, EMPTY, False, 0),
        (f"{PATH}?watch=true", EMPTY, True, 0),
        ("/api/v1", EMPTY, True, 0),
    ],
    ids=["an empty list", "a list with it", "a refusal", "a watch", "another request"],
)
async def test_only_an_empty_list_says_that_the_config_map_is_missing(
    path: str, body: bytes, ok: bool, num_missing: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    specs: list[WatchSpec] = []
    monkeypatch.setattr(
        config_map_watch, "KopfRunner", lambda _connection, spec, *_: specs.append(spec)
    )
    configuration = _Configuration()
    ConfigMapWatch(
        cast("Connection", SimpleNamespace(timeouts=Timeouts())),
        ConfigMapReference("team", "config"),
        cast("LiveConfiguration", configuration),
        lambda: None,
        FakeTime().clock,
    )
    (spec,) = specs
    assert (spec.resource, spec.namespace) == ("configmaps", "team")
    answer = _Answer(body, ok=ok)

    async def handler(_request: Any) -> Any:
        return answer

    request = cast("Any", make_mocked_request("GET", path))
    passed_on: Any = await spec.middleware(request, handler)
    assert passed_on is answer
    assert configuration.num_missing == num_missing
