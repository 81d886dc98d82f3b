"""The watch of pending pods through Kopf: the filter of watch lines, and the settings."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import cast

import aiohttp
import pytest

from stowage.api.events import ObjectInvalid
from stowage.operator.inbox import Inbox
from stowage.operator.kopf.pending_pod_watch import DeletedEventFilter
from stowage.operator.kopf.settings import NoMemory, pod_watching_settings
from stowage.operator.watch.pending_pods import PendingPods
from tests.support.fake_api import FakeTime, no_jitter

ADDED = (
    b'{"type":"ADDED","object":{"metadata":{"name":"a","uid":"a","resourceVersion":"7"},"spec":{}}}'
    b"\n"
)
DELETED = ADDED.replace(b"ADDED", b"DELETED").replace(b'"a"', b'"b"').replace(b"7", b"8")


class _Body:
    """A stream of chunks."""

    def __init__(self, *chunks: bytes) -> None:
        self._chunks = chunks
        self.total_bytes = sum(map(len, chunks))

    async def iter_any(self) -> AsyncIterator[bytes]:
        for chunk in self._chunks:
            yield chunk


async def _read(body: _Body, deleted: list[str]) -> bytes:
    content = DeletedEventFilter(cast("aiohttp.StreamReader", body), deleted.append)
    return b"".join([chunk async for chunk in content.iter_chunked(1024)])


async def test_deleted_events_become_bookmarks_and_other_events_stay() -> None:
    deleted: list[str] = []
    bookmark = b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"8"}}}\n'
    assert await _read(_Body(ADDED + DELETED, ADDED), deleted) == ADDED + bookmark + ADDED
    assert deleted == ["b"]


UNREADABLE = {
    "no JSON": b'{"type":"ADDED","object":{"metadata":{"uid":"a","resourceVersion":"9"}',
    "no characters": ADDED.strip().replace(b'"a"', b'"\xff"'),
    "an endless number": ADDED.strip().replace(b'"spec":{}', b'"spec":{"a":' + b"9" * 4301 + b"}"),
    "nested too deep": b'{"type":"ADDED","object":' + b"[" * 10_000 + b"]" * 10_000 + b"}",
    "an event without an object": b'{"type":"ADDED","object":null}',
    "no event": b"[]",
    "a pod without metadata": b'{"type":"ADDED","object":{"metadata":null,"spec":{}}}',
    "a pod without a spec": ADDED.strip().replace(b'"spec":{}', b'"spec":null'),
    "a number for a UID": ADDED.strip().replace(b'"uid":"a"', b'"uid":1'),
}


@pytest.mark.parametrize("which", UNREADABLE)
async def test_an_invalid_watch_line_becomes_a_bookmark_and_is_reported(which: str) -> None:
    inbox = Inbox()
    pods = PendingPods(inbox, ["stowage"])
    body = cast("aiohttp.StreamReader", _Body(UNREADABLE[which] + b"\n", ADDED))
    content = DeletedEventFilter(
        body, pods.handle_removal, pods.note_activity, pods.handle_invalid_line
    )
    first, second = [
        json.loads(line)
        async for chunk in content.iter_chunked(1024)
        for line in chunk.splitlines()
    ]
    assert first["type"] == "BOOKMARK"
    assert isinstance(first["object"]["metadata"], dict)
    assert second == json.loads(ADDED)
    (problem,) = inbox.drain(limit=10)
    assert isinstance(problem, ObjectInvalid)
    assert problem.kind == "Pod"
    assert problem.expectation


@pytest.mark.parametrize("line", [ADDED, DELETED, b'{"type":"BOOKMARK","object":{}}\n'])
async def test_each_line_of_a_watch_ends_the_silence(line: bytes) -> None:
    time = FakeTime()
    pods = PendingPods(Inbox(), ["stowage"], monotonic=time.monotonic)
    time.now += 60.0
    body = cast("aiohttp.StreamReader", _Body(line))
    content = DeletedEventFilter(body, pods.handle_removal, pods.note_activity)
    assert [pods.idle_s async for _ in content.iter_chunked(1024)] == [0.0]


async def test_a_line_may_arrive_in_several_chunks() -> None:
    deleted: list[str] = []
    await _read(_Body(DELETED[:5], DELETED[5:30], DELETED[30:]), deleted)
    assert deleted == ["b"]


def test_other_attributes_are_those_of_the_wrapped_body() -> None:
    body = _Body(ADDED)
    content = DeletedEventFilter(cast("aiohttp.StreamReader", body), lambda uid: None)
    assert content.total_bytes == body.total_bytes


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
