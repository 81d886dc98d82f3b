"""The watch of pending pods through Kopf: the filter of watch lines, and the settings."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, cast

import aiohttp
import pytest
from aiohttp.test_utils import make_mocked_request
from yarl import URL

from stowage.api.decoding.decode import decode_watch_event
from stowage.api.events import ObjectInvalid, PendingPodGone, PendingPodSeen
from stowage.api.objects.pod import Pod
from stowage.operator.client.connection import Connection
from stowage.operator.client.timeouts import Timeouts
from stowage.operator.inbox import Inbox
from stowage.operator.kopf import pending_pod_watch
from stowage.operator.kopf.pending_pod_watch import HandledLines
from stowage.operator.kopf.runner import WatchSpec
from stowage.operator.kopf.settings import NoMemory, pod_watching_settings
from stowage.operator.watch import pending_pods
from stowage.operator.watch.pending_pods import PendingPods
from tests.support.fake_api import FakeTime, no_jitter

ADDED = (
    b'{"type":"ADDED","object":{"metadata":{"name":"a","uid":"a","resourceVersion":"7"},'
    b'"spec":{"schedulerName":"stowage"}}}\n'
)
DELETED = ADDED.replace(b"ADDED", b"DELETED").replace(b"7", b"8")
SPEC = b'"spec":{"schedulerName":"stowage"}'
EXPIRED = b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}\n'


class _Body:
    """A stream of chunks, each some seconds after the one before it."""

    def __init__(self, *chunks: bytes, seconds: float = 0.0) -> None:
        self._chunks = list(chunks)
        self._is_first = True
        self._seconds = seconds
        self.time = FakeTime()
        self.total_bytes = sum(map(len, chunks))

    async def readany(self) -> bytes:
        if not self._is_first:
            self.time.now += self._seconds
        self._is_first = False
        return self._chunks.pop(0) if self._chunks else b""


class _Watch:
    """A watch whose lines go to `PendingPods`."""

    def __init__(self, body: _Body) -> None:
        self.inbox = Inbox()
        self.pods = PendingPods(self.inbox, ["stowage"], monotonic=body.time.monotonic)
        self.content = HandledLines(
            cast("aiohttp.StreamReader", body), self.pods, body.time.monotonic
        )

    async def read(self) -> list[Any]:
        """What Kopf reads."""
        chunks = [chunk async for chunk in self.content.iter_chunked(1024)]
        return [json.loads(line) for chunk in chunks for line in chunk.splitlines()]


def _bookmark(resource_version: str) -> dict[str, Any]:
    return {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": resource_version}}}


async def test_pods_go_to_the_engine_and_kopf_reads_a_bookmark() -> None:
    watch = _Watch(_Body(ADDED + DELETED))
    assert await watch.read() == [_bookmark("8")]
    added, deleted = watch.inbox.drain(limit=10)
    assert isinstance(added, PendingPodSeen)
    assert added.pod.metadata.name == "a"
    assert deleted == PendingPodGone("", "a", "a")


async def test_a_pod_is_decoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[bytes] = []

    def decode(kind: type[Pod], line: bytes) -> Any:
        decoded.append(line)
        return decode_watch_event(kind, line)

    monkeypatch.setattr(pending_pods, "decode_watch_event", decode)
    watch = _Watch(_Body(ADDED))
    read_by_kopf = await watch.read()
    assert decoded == [ADDED.strip()]
    assert "schedulerName" not in json.dumps(read_by_kopf)


async def test_a_pod_that_is_gone_is_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = _Watch(_Body(ADDED, DELETED))
    watch.pods.handle_line(ADDED.strip())
    monkeypatch.setattr(pending_pods, "decode_watch_event", None)
    assert watch.pods.handle_line(DELETED.strip()) == "8"
    assert watch.inbox.drain(limit=10)[1:] == [PendingPodGone("", "a", "a")]


@pytest.mark.parametrize(("seconds", "want"), [(0.4, ["7", "10"]), (1.0, ["7", "8", "9", "10"])])
async def test_kopf_reads_at_most_one_bookmark_a_second(seconds: float, want: list[str]) -> None:
    lines = [ADDED.replace(b'"7"', b'"%d"' % each) for each in (7, 8, 9, 10)]
    watch = _Watch(_Body(*lines, seconds=seconds))
    assert await watch.read() == [_bookmark(version) for version in want]
    assert len(watch.inbox.drain(limit=10)) == 4


async def test_kopf_reads_the_error_that_ends_a_watch() -> None:
    bookmark, error = await _Watch(_Body(ADDED + EXPIRED)).read()
    assert bookmark == _bookmark("7")
    assert (error["type"], error["object"]["code"]) == ("ERROR", 410)


UNREADABLE = {
    "no JSON": b'{"type":"ADDED","object":{"metadata":{"uid":"a","resourceVersion":"9"}',
    "no characters": ADDED.strip().replace(b'"a"', b'"\xff"'),
    "nested too deep": b'{"type":"ADDED","object":' + b"[" * 10_000 + b"]" * 10_000 + b"}",
    "an event without an object": b'{"type":"ADDED","object":null}',
    "no event": b"[]",
    "an unknown event": ADDED.strip().replace(b"ADDED", b"MOVED"),
    "a pod without metadata": b'{"type":"ADDED","object":{"metadata":null,%s}}' % SPEC,
    "a number for a UID": ADDED.strip().replace(b'"uid":"a"', b'"uid":1'),
}


@pytest.mark.parametrize("which", UNREADABLE)
async def test_an_invalid_watch_line_becomes_a_bookmark_and_is_reported(which: str) -> None:
    watch = _Watch(_Body(UNREADABLE[which] + b"\n", ADDED, seconds=2.0))
    first, second = await watch.read()
    assert first["type"] == "BOOKMARK"
    assert isinstance(first["object"]["metadata"], dict)
    assert second == _bookmark("7")
    problem, _ = watch.inbox.drain(limit=10)
    assert isinstance(problem, ObjectInvalid)
    assert problem.kind == "Pod"
    assert problem.expectation


async def test_a_number_too_long_for_python_does_not_matter() -> None:
    line = ADDED.replace(b'"schedulerName"', b'"a":' + b"9" * 4301 + b',"schedulerName"')
    watch = _Watch(_Body(line))
    assert await watch.read() == [_bookmark("7")]
    (seen,) = watch.inbox.drain(limit=10)
    assert isinstance(seen, PendingPodSeen)


@pytest.mark.parametrize("line", [ADDED, DELETED, b'{"type":"BOOKMARK","object":{}}\n'])
async def test_each_line_of_a_watch_ends_the_silence(line: bytes) -> None:
    body = _Body(line)
    watch = _Watch(body)
    body.time.now += 60.0
    assert [watch.pods.idle_s async for _ in watch.content.iter_chunked(1024)] == [0.0]


async def test_a_line_may_arrive_in_several_chunks() -> None:
    watch = _Watch(_Body(ADDED[:5], ADDED[5:30], ADDED[30:]))
    await watch.read()
    assert len(watch.inbox) == 1


def test_other_attributes_are_those_of_the_wrapped_body() -> None:
    body = _Body(ADDED)
    assert _Watch(body).content.total_bytes == body.total_bytes


def _middleware(pods: PendingPods, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What the watch of these pods does with the answers to Kopf."""
    specs: list[WatchSpec] = []
    monkeypatch.setattr(
        pending_pod_watch, "KopfRunner", lambda _connection, spec, *_rest: specs.append(spec)
    )
    connection = cast("Connection", SimpleNamespace(timeouts=Timeouts()))
    pending_pod_watch.PendingPodWatch(connection, pods, ["stowage"], lambda: None, FakeTime().clock)
    (spec,) = specs
    return spec.middleware


async def test_the_lines_of_kopfs_watch_go_to_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    inbox, time = Inbox(), FakeTime()
    pods = PendingPods(inbox, ["stowage"], monotonic=time.monotonic)
    time.now += 5.0
    body = _Body(ADDED)

    async def answer(_request: Any) -> Any:
        return SimpleNamespace(ok=True, content=body)

    request = SimpleNamespace(url=URL("http://server/api/v1/pods?watch=true"))
    content = (await _middleware(pods, monkeypatch)(request, answer)).content
    assert pods.idle_s == 0.0
    (line,) = [chunk async for chunk in content.iter_chunked(1024)]
    assert json.loads(line) == _bookmark("7")
    assert isinstance(inbox.drain(9)[0], PendingPodSeen)


@pytest.mark.parametrize(("path", "ok"), [("/api/v1/nodes", True), ("/api/v1/pods", False)])
async def test_kopf_reads_other_answers_as_they_are(
    path: str, ok: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    inbox, body = Inbox(), object()

    async def answer(_request: Any) -> Any:
        return SimpleNamespace(ok=ok, content=body)

    middleware = _middleware(PendingPods(inbox, ["stowage"]), monkeypatch)
    response = await middleware(make_mocked_request("GET", path), answer)
    assert response.content is body
    assert len(inbox) == 0


async def test_kopf_reads_a_list_without_its_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    inbox = Inbox()
    middleware = _middleware(PendingPods(inbox, ["stowage"]), monkeypatch)
    items = [{"metadata": {"name": "a", "uid": "a"}, "spec": {"schedulerName": "stowage"}}]
    body = _ListBody(json.dumps({"metadata": {"resourceVersion": "9"}, "items": items}).encode())

    async def answer(_request: Any) -> Any:
        return SimpleNamespace(ok=True, content=body)

    request = make_mocked_request("GET", "/api/v1/pods")
    content = (await middleware(request, answer)).content
    passed = json.loads(await content.read())
    assert (passed["metadata"]["resourceVersion"], passed["items"]) == ("9", [])
    assert content.total_bytes == body.total_bytes
    assert len(inbox) == 1


@pytest.mark.parametrize(
    ("has_failing_requests", "since_s", "is_restarted"),
    [
        (False, None, False),
        (False, -1.0, False),
        (False, 1.0, True),
        (True, None, True),
        (True, -1.0, True),
    ],
)
def test_kopf_lists_again_if_its_requests_fail_or_it_has_heard_nothing_since_then(
    monkeypatch: pytest.MonkeyPatch,
    *,
    has_failing_requests: bool,
    since_s: float | None,
    is_restarted: bool,
) -> None:
    restarts: list[str] = []
    runner = SimpleNamespace(
        has_failing_requests=has_failing_requests, restart=lambda: restarts.append("restart")
    )
    monkeypatch.setattr(pending_pod_watch, "KopfRunner", lambda *_given: runner)
    connection, time = cast("Connection", SimpleNamespace(timeouts=Timeouts())), FakeTime()
    pods = PendingPods(Inbox(), ["stowage"], monotonic=time.monotonic)
    watch = pending_pod_watch.PendingPodWatch(
        connection, pods, ["stowage"], lambda: None, time.clock
    )
    watch.reconnect(None if since_s is None else time.now + since_s)
    assert bool(restarts) is is_restarted


class _ListBody:
    def __init__(self, text: bytes) -> None:
        self._text = text
        self.total_bytes = len(text)

    async def read(self) -> bytes:
        return self._text


async def test_kopf_keeps_no_memory_of_a_pod() -> None:
    memories = NoMemory()
    raw = {"metadata": {"uid": "u"}}
    first = await memories.recall(raw, noticed_by_listing=True)
    assert await memories.recall(raw) is not first
    assert list(memories.iter_all_memories()) == []


def test_kopf_posts_no_events_and_retries_for_ever() -> None:
    settings = pod_watching_settings("spec.nodeName=", no_jitter)
    assert not settings.posting.enabled
    assert settings.scanning.disabled
    assert dict(settings.watching.field_selectors.items())
    delays = iter(settings.networking.error_backoffs)  # type: ignore[arg-type]
    assert [next(delays) for _ in range(8)] == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]


def test_kopf_waits_between_retries_no_longer_than_the_other_watches() -> None:
    settings = pod_watching_settings("", no_jitter, Timeouts(max_backoff_s=1.5))
    delays = iter(settings.networking.error_backoffs)  # type: ignore[arg-type]
    assert [next(delays) for _ in range(4)] == [0.5, 1.0, 1.5, 1.5]
