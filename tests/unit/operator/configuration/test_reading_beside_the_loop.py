"""Versions of the ConfigMap are read in a thread, and take effect in their order."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest

from stowage.api.events import ConfigurationChanged
from stowage.operator.configuration.live_configuration import ConfigMapOptions, LoadedConfiguration
from stowage.operator.configuration.reading import ThreadReader
from tests.unit.operator.configuration.live_recorder import REFERENCE, Recorder, load


class ThreadRecorder(Recorder):
    """Reads versions in a thread, which waits for `go_on`."""

    def __init__(self) -> None:
        super().__init__()
        self.go_on = threading.Event()
        self.reader = ThreadReader()
        self.live.follow(ConfigMapOptions(REFERENCE, self._load), self, self.reader.read)

    async def read_all(self) -> None:
        """Let the thread go on, and wait until all versions are read."""
        self.go_on.set()
        await asyncio.wait(asyncio.all_tasks() - {asyncio.current_task()})

    def _load(self, text: str) -> LoadedConfiguration:
        assert self.go_on.wait(timeout=10), "the event loop waits for the thread"
        if text == "broken":
            raise KeyError(text)
        return load(text)


@pytest.fixture
async def reading() -> AsyncIterator[ThreadRecorder]:
    recorder = ThreadRecorder()
    yield recorder
    recorder.go_on.set()
    await recorder.reader.close()


async def test_the_event_loop_goes_on_while_a_version_is_read(reading: ThreadRecorder) -> None:
    reading.edit("new")
    await asyncio.sleep(0)
    assert reading.posted == []
    await reading.read_all()
    assert reading.posted == [ConfigurationChanged("new", {"text": "new"})]


async def test_versions_and_a_deletion_take_effect_in_their_order(reading: ThreadRecorder) -> None:
    reading.edit("first")
    await asyncio.sleep(0)
    reading.edit("wrong")
    reading.edit("second")
    reading.edit("second", "DELETED")
    assert reading.recorded == []
    await reading.read_all()
    assert [event.hash for event in reading.posted if isinstance(event, ConfigurationChanged)] == [
        "first",
        "second",
    ]
    notes = [note for _, _, note in reading.recorded]
    assert [note.partition(";")[0] for note in notes] == [
        "first stays in force",
        "second stays in force",
    ]
    assert "an existing ConfigMap" in notes[1]


async def test_an_unexpected_exception_keeps_no_later_version_out(reading: ThreadRecorder) -> None:
    reading.edit("broken")
    reading.edit("new")
    await reading.read_all()
    assert reading.posted == [ConfigurationChanged("new", {"text": "new"})]


async def test_no_version_is_taken_after_the_end(reading: ThreadRecorder) -> None:
    reading.edit("new")
    await asyncio.sleep(0)
    await reading.reader.close()
    reading.edit("newer")
    reading.go_on.set()
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert reading.posted == []
