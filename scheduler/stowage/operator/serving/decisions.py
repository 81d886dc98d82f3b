"""The endpoint of the decisions."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from http import HTTPStatus

import msgspec
from aiohttp import web

from stowage.api.decisions import DecisionQuery, InvalidDecisionQuery
from stowage.operator.decisions.store import DecisionStore

PATH = "/debug/decisions"
DECISIONS_AT_ONCE = 20
"""Decisions that are encoded before scheduling goes on: about a millisecond's work."""


def decision_routes(store: DecisionStore) -> Sequence[web.RouteDef]:
    """The route of ``/debug/decisions``."""

    async def show(request: web.Request) -> web.Response:
        return await _answer(store, request)

    return [web.get(PATH, show)]


async def _answer(store: DecisionStore, request: web.Request) -> web.Response:
    repeated = [name for name in request.query if len(request.query.getall(name)) > 1]
    try:
        if repeated:
            raise InvalidDecisionQuery(f"{repeated[0]}: expected once")
        query = DecisionQuery.of(dict(request.query))
    except InvalidDecisionQuery as invalid:
        return web.Response(status=HTTPStatus.BAD_REQUEST, text=f"{invalid}\n")
    found, last = store.find(query)
    encoded: list[bytes] = []
    for number, recorded in enumerate(found, 1):
        encoded.append(msgspec.json.encode(store.ids.decision(recorded)))
        if number % DECISIONS_AT_ONCE == 0:
            await asyncio.sleep(0)
    body = b'{"decisions":[%b],"last":%b}' % (b",".join(encoded), msgspec.json.encode(last))
    return web.Response(body=body, content_type="application/json")
