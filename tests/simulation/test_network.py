"""Requests leave a process when they are connected, unless it has cancelled them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from contextlib import suppress

import pytest
from yarl import URL

from stowage.operator.client.api_client import ApiClient
from stowage.operator.client.timeouts import Timeouts
from tests.simulation.fault_rates import FaultRates
from tests.simulation.loop import VirtualLoop
from tests.simulation.network import USUAL_DELAY_S, Network, virtual_connection
from tests.simulation.objects import make_node
from tests.simulation.server import NODES, Answer, ModelServer

QUERY = {"fieldSelector": "metadata.name!=b,metadata.name!=ö x", "limit": "5"}


@pytest.fixture
def loop() -> Iterator[VirtualLoop]:
    loop = VirtualLoop()
    yield loop
    loop.close()


def _network(loop: VirtualLoop) -> Network:
    server = ModelServer(loop.time)
    for name in ("a", "b", "ö x"):
        server.create(NODES, make_node(name, 1))
    return Network(loop, server, random.Random(1), FaultRates(), lambda *_write: None)


def test_the_server_reads_the_query_that_the_client_has_encoded(loop: VirtualLoop) -> None:
    network = _network(loop)
    client = ApiClient(virtual_connection("reader", network, Timeouts()))
    body = loop.run_until_complete(client.get(NODES, QUERY))
    assert body.count(b'"name":"') == 1
    assert b'"name":"a"' in body
    assert 3 * USUAL_DELAY_S[0] < loop.time() < 3 * USUAL_DELAY_S[1]


def test_a_request_that_is_cancelled_before_it_is_connected_does_not_arrive(
    loop: VirtualLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    network, arrived = _network(loop), list[str]()
    usual = network.answer

    def answer(process: str, method: str, url: URL, body: bytes | None) -> Answer:
        arrived.append(process)
        return usual(process, method, url, body)

    monkeypatch.setattr(network, "answer", answer)

    async def run(process: str, lasts_s: float) -> None:
        client = ApiClient(virtual_connection(process, network, Timeouts()))
        with suppress(TimeoutError):
            async with asyncio.timeout(lasts_s):
                await client.get(NODES, QUERY)
        await asyncio.sleep(1)

    loop.run_until_complete(run("hasty", USUAL_DELAY_S[0] / 2))
    assert not arrived
    loop.run_until_complete(run("patient", 1.0))
    assert arrived == ["patient"]
