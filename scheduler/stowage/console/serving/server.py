"""The routes of the console, on 127.0.0.1."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

import msgspec
from aiohttp import web

from stowage.analysis.explain_pod import NotInCluster
from stowage.api.decisions import DecisionQuery, InvalidDecisionQuery
from stowage.console.answers.answer import InvalidQuestion
from stowage.console.answers.cluster_map import ZONE
from stowage.console.answers.pod_lists import PendingQuery
from stowage.console.answers.what_if_answer import Changes
from stowage.console.clusters.source import NotReady
from stowage.console.serving.access import HEADERS, Access
from stowage.console.serving.forked import AnswerFailed, AnswerRefused, AnswerTookTooLong
from stowage.console.serving.parameters import Parameters, parse_time
from stowage.console.serving.questions import Questions, refusal_of
from stowage.console.serving.responses import (
    JSON,
    Encoded,
    RefusedQuestion,
    encoded,
    error_response,
    json_response,
    refused_response,
)
from stowage.console.serving.static_files import FOLDER, StaticFiles
from stowage.console.stream.connection import answer_stream
from stowage.console.stream.hub import Hub

ADDRESS = "127.0.0.1"
MAX_BODY_BYTES = 4 * 2**20
SHUTDOWN_S = 1.0
MAX_ROWS = 1_000

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
BodyT = TypeVar("BodyT", bound=msgspec.Struct)


class ConsoleServer:
    """Serves the page, the answers and the stream.

    Args:
        questions: Answers.
        hub: The stream.
        token: Whoever has it may ask.
        static: The folder of the page.

    Attributes:
        app: The routes with their access checks.
        port: The port in use after `start`.
    """

    def __init__(self, questions: Questions, hub: Hub, token: str, static: Path = FOLDER) -> None:
        self.port = 0
        self._questions = questions
        self._hub = hub
        self._token = token
        self._static = StaticFiles(static)
        self._access = Access(token, 0)
        self.app = web.Application(middlewares=[self._guard], client_max_size=MAX_BODY_BYTES)
        self.app.add_routes(self._routes())
        self.app.on_response_prepare.append(_add_headers)
        self._runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        """The address with the token."""
        return f"http://{ADDRESS}:{self.port}/?token={quote(self._token)}"

    async def start(self, port: int) -> None:
        """Listen on a port of 127.0.0.1; 0 lets the system choose one.

        Raises:
            OSError: The port is taken.
        """
        self._runner = web.AppRunner(
            self.app, access_log=None, shutdown_timeout=SHUTDOWN_S, handler_cancellation=True
        )
        await self._runner.setup()
        site = web.TCPSite(self._runner, ADDRESS, port)
        await site.start()
        self.port = int(self._runner.addresses[0][1])
        self._access = Access(self._token, self.port)

    async def stop(self) -> None:
        """Close all connections."""
        if self._runner is not None:
            for subscriber in list(self._hub.subscribers):
                subscriber.close()
            await self._runner.cleanup()

    def _routes(self) -> list[web.RouteDef]:
        ask = self._answered
        return [
            web.get("/api/about", ask(self._about)),
            web.get("/api/cluster", ask(self._cluster)),
            web.get("/api/verdicts", ask(self._verdicts)),
            web.get("/api/nodes/{name}", ask(self._node)),
            web.get("/api/pods", ask(self._pods)),
            web.get("/api/pods/{namespace}/{name}", ask(self._pod)),
            web.get("/api/pods/{key:.*}", ask(self._misnamed_pod)),
            web.get("/api/pending", ask(self._pending)),
            web.get("/api/decisions", ask(self._decisions)),
            web.get("/api/decisions/stats", ask(self._statistics)),
            web.get("/api/decisions/{id}", ask(self._decision)),
            web.get("/api/timeline", ask(self._timeline)),
            web.post("/api/what-if", ask(self._what_if)),
            web.post("/api/manifests", ask(self._manifests)),
            web.get("/stream", self._stream),
            web.get("/static/{path:.*}", self._file),
            web.route("*", "/api/{path:.*}", self._unknown),
            web.get("/{path:.*}", self._page),
        ]

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Check the request; an address with the token becomes a cookie."""
        refusal = self._access.refusal(request)
        if refusal is not None:
            entry = None
            if refusal.status == HTTPStatus.UNAUTHORIZED:
                entry = self._access.entry(request)
            return entry or refusal
        return self._access.entry(request) or await handler(request)

    def _answered(self, ask: Callable[[web.Request], Awaitable[Encoded]]) -> Handler:
        """A handler that turns answers and refusals into responses."""

        async def handle(request: web.Request) -> web.StreamResponse:
            try:
                return json_response(request, await ask(request))
            except AnswerRefused as refusal:
                told = msgspec.msgpack.decode(refusal.body, type=RefusedQuestion)
                return refused_response(told)
            except InvalidDecisionQuery as invalid:
                return error_response(HTTPStatus.BAD_REQUEST, str(invalid))
            except NotReady as waiting:
                return error_response(HTTPStatus.SERVICE_UNAVAILABLE, str(waiting))
            except AnswerTookTooLong as late:
                return error_response(HTTPStatus.GATEWAY_TIMEOUT, str(late))
            except AnswerFailed as failed:
                return error_response(HTTPStatus.INTERNAL_SERVER_ERROR, str(failed))
            except (InvalidQuestion, LookupError) as error:
                body = refusal_of(error)
                if body is None:
                    raise
                return refused_response(msgspec.msgpack.decode(body, type=RefusedQuestion))

        return handle

    async def _about(self, request: web.Request) -> Encoded:
        Parameters(request.query, ())
        return await self._questions.about()

    async def _cluster(self, request: web.Request) -> Encoded:
        given = Parameters(request.query, ("at", "group"))
        return await self._questions.cluster(given.time(), given.text("group") or ZONE)

    async def _verdicts(self, request: web.Request) -> Encoded:
        given = Parameters(request.query, ("at", "pod"))
        return await self._questions.verdicts(given.time(), given.text("pod"))

    async def _node(self, request: web.Request) -> Encoded:
        given = Parameters(request.query, ("at",))
        return await self._questions.node(given.time(), request.match_info["name"])

    async def _pods(self, request: web.Request) -> Encoded:
        given = Parameters(request.query, ("at", "q", "limit"))
        limit = given.number("limit", 50, 1, MAX_ROWS)
        return await self._questions.pods(given.time(), given.text("q"), limit)

    async def _pod(self, request: web.Request) -> Encoded:
        given = Parameters(request.query, ("at",))
        key = f"{request.match_info['namespace']}/{request.match_info['name']}"
        return await self._questions.pod(given.time(), key)

    async def _misnamed_pod(self, request: web.Request) -> Encoded:
        given = request.match_info["key"][:80]
        raise InvalidQuestion("pod", f"expected NAMESPACE/NAME, got {given!r}")

    async def _pending(self, request: web.Request) -> Encoded:
        given = Parameters(request.query, ("at", "q", "limit", "offset", "sort"))
        query = PendingQuery(
            given.text("q"),
            given.number("limit", 200, 1, MAX_ROWS),
            given.number("offset", 0, 0, 10**8),
            given.text("sort", "since"),
        )
        return await self._questions.pending(given.time(), query)

    async def _decisions(self, request: web.Request) -> Encoded:
        given = dict(request.query)
        before = given.pop("before", "")
        at = parse_time(given.pop("at", ""), "at")
        return await self._questions.decisions(at, DecisionQuery.of(given), before)

    async def _statistics(self, request: web.Request) -> Encoded:
        return await self._questions.statistics(Parameters(request.query, ("at",)).time())

    async def _decision(self, request: web.Request) -> Encoded:
        given = Parameters(request.query, ("at",))
        return await self._questions.decision(given.time(), request.match_info["id"])

    async def _timeline(self, request: web.Request) -> Encoded:
        Parameters(request.query, ())
        await self._questions.source.at(None)
        timeline = self._questions.source.timeline
        if timeline is None:
            raise NotInCluster("there is no timeline: the source is no recording")
        return encoded(timeline)

    async def _what_if(self, request: web.Request) -> Encoded:
        changes = await _body(request, Changes)
        return await self._questions.what_if(parse_time(changes.at, "at"), changes)

    async def _manifests(self, request: web.Request) -> Encoded:
        return await self._questions.manifests((await _body(request, _Manifests)).manifests)

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        return await answer_stream(request, self._hub, self._questions.source)

    async def _file(self, request: web.Request) -> web.StreamResponse:
        return self._static.file(request, request.match_info["path"])

    async def _page(self, request: web.Request) -> web.StreamResponse:
        return self._static.index(request)

    async def _unknown(self, request: web.Request) -> web.StreamResponse:
        return error_response(
            HTTPStatus.NOT_FOUND, f"there is no {request.path[:80]} to {request.method}"
        )


class _Manifests(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of a check."""

    manifests: str = ""


async def _body(request: web.Request, kind: type[BodyT]) -> BodyT:
    """The body of a POST.

    Raises:
        InvalidQuestion: It is not JSON of this shape.
    """
    if request.content_type != JSON:
        raise InvalidQuestion("Content-Type", f"expected {JSON}, got {request.content_type[:80]}")
    try:
        return msgspec.json.decode(await request.read(), type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InvalidQuestion("body", str(error)) from error


async def _add_headers(_request: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(HEADERS)
