"""A fake API client: answers are scripted, requests are recorded, and sleeping takes no time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from stowage.operator.client.api_client import ApiClient
from stowage.operator.client.outage_log import OutageLog
from stowage.operator.client.timeouts import Timeouts
from stowage.operator.clock import Clock

Answer = bytes | Exception

SILENCE = object()
"""In a script: no answer comes, and the connection stays open."""


@dataclass
class Request:
    """A recorded request."""

    method: str
    path: str
    body: Any = None
    params: Mapping[str, str] = field(default_factory=dict)


class FakeApiClient(ApiClient):
    """Answers by method in the order of its script; the last answer of a script repeats.

    The script of a watch is a list of chunks; a function in the list is called in its turn.
    """

    def __init__(self, **scripts: list[Any]) -> None:
        self.timeouts = Timeouts()
        self.outages = OutageLog("fake")
        self.requests: list[Request] = []
        self._awaited_number = 0
        self._has_sent = asyncio.Event()
        self._scripts = {method.upper(): list(answers) for method, answers in scripts.items()}

    def script(self, method: str, *answers: Any) -> None:
        """Replace the future answers to a method."""
        self._scripts[method] = list(answers)

    def sent(self, method: str) -> list[Request]:
        return [request for request in self.requests if request.method == method]

    async def has_sent(self, number: int) -> None:
        """Return as soon as that many requests were sent."""
        self._awaited_number = number
        self._has_sent.clear()
        await self._has_sent.wait()

    async def get(
        self,
        path: str,
        params: Any = None,
        timeout: Any = None,  # noqa: ASYNC109 - as in the real client
    ) -> bytes:
        params = dict(params or {})
        # The question whether the server has reached a version has a script of its own.
        method = "ASK" if "resourceVersionMatch" in params else "GET"
        return await self._answer(Request(method, path, None, params))

    async def post(
        self,
        path: str,
        body: bytes,
        timeout: Any = None,  # noqa: ASYNC109 - as in the real client
    ) -> bytes:
        return await self._answer(Request("POST", path, msgspec.json.decode(body)))

    async def put(
        self,
        path: str,
        body: bytes,
        timeout: Any = None,  # noqa: ASYNC109 - as in the real client
    ) -> bytes:
        return await self._answer(Request("PUT", path, msgspec.json.decode(body)))

    async def patch(self, path: str, body: bytes) -> bytes:
        return await self._answer(Request("PATCH", path, msgspec.json.decode(body)))

    async def delete(self, path: str, options: bytes) -> bytes:
        return await self._answer(Request("DELETE", path, msgspec.json.decode(options)))

    async def stream(
        self,
        path: str,
        params: Mapping[str, str],
        read_timeout_s: float,
        on_answer: Callable[[], None] = lambda: None,
    ) -> AsyncIterator[bytes]:
        self.requests.append(Request("WATCH", path, None, dict(params)))
        chunks = self._next("WATCH")
        if not (chunks and isinstance(chunks[0], Exception)):
            on_answer()
        for chunk in chunks:
            if isinstance(chunk, Exception):
                raise chunk
            if chunk is SILENCE:
                await asyncio.Event().wait()
            if callable(chunk):
                chunk()
                continue
            yield chunk

    async def _answer(self, request: Request) -> bytes:
        self.requests.append(request)
        if len(self.requests) >= self._awaited_number:
            self._has_sent.set()
        await asyncio.sleep(0)
        answer = self._next(request.method)
        if answer is SILENCE:
            await asyncio.Event().wait()
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, bytes) else msgspec.json.encode(answer)

    def _next(self, method: str) -> Any:
        script = self._scripts.get(method, [{}])
        return script.pop(0) if len(script) > 1 else script[0]


class FakeTime:
    """A clock that advances only by sleeping."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now
        self.slept: list[float] = []
        self.on_sleep: Callable[[], None] = lambda: None

    @property
    def clock(self) -> Clock:
        """A `Clock` of the shell on this time, without jitter."""
        return Clock(
            monotonic=self.monotonic,
            timestamp=self.timestamp,
            timestamp_micro=self.timestamp,
            unix_nanoseconds=self.nanoseconds,
            jitter=no_jitter,
            sleep=self.sleep,
        )

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        self.on_sleep()
        await asyncio.sleep(0)

    def timestamp(self) -> str:
        return f"t{self.now:.0f}"

    def nanoseconds(self) -> int:
        self.now += 1e-6
        return int(self.now * 1e9)


def no_jitter() -> float:
    return 1.0
