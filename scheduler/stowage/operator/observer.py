"""Records what the watches of a cluster show, beside any scheduler, and writes nothing to it.

lists and watches --> Inbox --> Recorder --> file

The calls of the recording have the events and no instructions; `stowage replay` decides by them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack

import msgspec

from stowage.api.events import Event
from stowage.api.reflected_kinds import POD_GROUP_SOURCES
from stowage.engine.journal import HandleCall
from stowage.operator.cancellation import cancel
from stowage.operator.client.api_client import ApiClient
from stowage.operator.client.connection import connect
from stowage.operator.clock import Clock
from stowage.operator.configuration.live_configuration import LoadedConfiguration
from stowage.operator.inbox import Inbox
from stowage.operator.loop import GATHER_S, MAX_EVENTS_AT_ONCE
from stowage.operator.recording import start_recording
from stowage.operator.run_options import RecordingOptions
from stowage.operator.watch.visible_kinds import OBSERVED, reflectors_of, visible_kinds
from stowage.recording.recorder import Recorder

_KINDS = (*OBSERVED, *POD_GROUP_SOURCES)
INTERRUPTED = "the observer was interrupted"


class ObserverOptions(msgspec.Struct, frozen=True):
    """Options of an observer.

    Attributes:
        kubeconfig: Path; None for ``$KUBECONFIG``, ``~/.kube/config`` or in-cluster configuration.
        context: Context of the kubeconfig; None for its current one.
        configuration: The configuration to replay with.
        recording: Where to record.
        say: Called with what a person should know: the file, kinds that are left out.
    """

    kubeconfig: str | None
    context: str | None
    configuration: LoadedConfiguration
    recording: RecordingOptions
    say: Callable[[str], None]


class Observed(msgspec.Struct):
    """What was recorded.

    Attributes:
        path: The first segment.
        num_bytes: Size of all recordings in the folder.
        num_calls: Number of calls.
        num_events: Number of events.
        end: Why the recording failed; empty if the caller stopped it.
    """

    path: str = ""
    num_bytes: int = 0
    num_calls: int = 0
    num_events: int = 0
    end: str = ""


async def observe(options: ObserverOptions, stop: asyncio.Event, clock: Clock) -> Observed | None:
    """Record until `stop` is set or the recording ends; None if it was stopped before the start.

    Raises:
        ApiError: The server refuses to list or watch pods or nodes.
        InvalidObject: The server is no API server.
        ConfigException: There is no usable kubeconfig.
        OSError: The server cannot be reached, or the file cannot be made.
    """
    async with AsyncExitStack() as cleanup:
        connection = await connect(options.kubeconfig, context=options.context)
        cleanup.push_async_callback(connection.close)
        client = ApiClient(connection)
        checking = asyncio.create_task(visible_kinds(client, options.say, _KINDS))
        stopping = asyncio.create_task(stop.wait())
        cleanup.push_async_callback(cancel, checking, stopping)
        await asyncio.wait({checking, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not checking.done():
            return None
        inbox = Inbox()
        reflectors = reflectors_of(await checking, client, inbox, clock)
        tasks = [asyncio.create_task(reflector.run()) for reflector in reflectors]
        tasks.append(asyncio.create_task(connection.keep_fresh()))
        cleanup.push_async_callback(cancel, *tasks)
        return await _record(options, inbox, stop, clock)


async def _record(
    options: ObserverOptions, inbox: Inbox, stop: asyncio.Event, clock: Clock
) -> Observed:
    observed, loop = Observed(), asyncio.get_running_loop()

    def end(reason: str) -> None:
        observed.end = reason
        loop.call_soon_threadsafe(stop.set)

    recorder = start_recording(
        options.recording, options.configuration, clock, end, decisions=False
    )
    observed.path = str(recorder.path)
    options.say(f"recording to {recorder.path}; Ctrl-C ends it")
    stopping = asyncio.create_task(stop.wait())
    stopping.add_done_callback(lambda _: inbox.wake())
    try:
        while not stop.is_set():
            await inbox.wait(None)
            await asyncio.sleep(GATHER_S)
            _take(inbox.drain(MAX_EVENTS_AT_ONCE), recorder, observed, clock.monotonic())
    finally:
        stopping.cancel()
        recorder.close(INTERRUPTED)
    observed.num_bytes = recorder.num_bytes
    return observed


def _take(events: list[Event], recorder: Recorder, observed: Observed, now: float) -> None:
    if events:
        recorder.record(HandleCall(now, tuple(events), ()))
        observed.num_calls += 1
        observed.num_events += len(events)
