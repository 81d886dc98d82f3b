"""One connection to the stream."""

from __future__ import annotations

from aiohttp import web

from stowage.console.clusters.source import ClusterSource
from stowage.console.stream.hub import TOO_OLD, TOO_SLOW, Hub
from stowage.console.stream.messages import Hello, Ping, Reset

RETRY = b"retry: 2000\n\n"


async def answer_stream(
    request: web.Request, hub: Hub, source: ClusterSource
) -> web.StreamResponse:
    """Send messages until the page goes away, or the server stops."""
    response = web.StreamResponse(
        headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"}
    )
    await response.prepare(request)
    subscriber = hub.subscribe()
    try:
        await response.write(_beginning(request, hub, source))
        while not subscriber.is_closed:
            data = await subscriber.take()
            if subscriber.missed:
                subscriber.missed = False
                data = hub.encode("reset", Reset(source.version, TOO_SLOW)) + data
            await response.write(data)
    except ConnectionResetError:
        pass  # the page was closed
    finally:
        hub.unsubscribe(subscriber)
    return response


def _beginning(request: web.Request, hub: Hub, source: ClusterSource) -> bytes:
    """The greeting, what the page missed, and a ping with the id to come back with."""
    hello = hub.encode("hello", Hello(source.version, source.is_live, source.state), has_id=False)
    ping = hub.encode("ping", Ping(source.version))
    last_id = request.headers.get("Last-Event-ID")
    if last_id is None:
        return RETRY + hello + ping
    missed = hub.missed_since(last_id)
    if missed is None:
        missed = hub.encode("reset", Reset(source.version, TOO_OLD))
    return RETRY + hello + missed + ping
