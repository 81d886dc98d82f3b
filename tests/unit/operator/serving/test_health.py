"""Health endpoints answer like the API server's."""

from __future__ import annotations

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from stowage.operator.serving.health import Checks, health_routes, report


def test_the_report_is_ok_if_all_checks_pass() -> None:
    assert report("livez", {"ping": lambda: True}, set(), verbose=False) == (200, "ok")


def test_a_verbose_report_lists_every_check() -> None:
    checks = {"leaderElection": lambda: True, "shutdown": lambda: True}
    text = "[+]leaderElection ok\n[+]shutdown ok\nreadyz check passed\n"
    assert report("readyz", checks, set(), verbose=True) == (200, text)


def test_a_failed_check_is_reported_without_its_reason() -> None:
    checks = {"leaderElection": lambda: True, "informer-sync": lambda: False}
    text = "[+]leaderElection ok\n[-]informer-sync failed: reason withheld\nreadyz check failed\n"
    assert report("readyz", checks, set(), verbose=False) == (500, text)


def test_an_excluded_check_does_not_fail_the_report() -> None:
    checks = {"informer-sync": lambda: False, "shutdown": lambda: True}
    assert report("readyz", checks, {"informer-sync"}, verbose=False) == (200, "ok")
    _, text = report("readyz", checks, {"informer-sync"}, verbose=True)
    assert text == "[+]informer-sync excluded: ok\n[+]shutdown ok\nreadyz check passed\n"


def test_excluding_an_unknown_check_is_a_warning() -> None:
    _, text = report("livez", {"ping": lambda: True}, {"nosuch"}, verbose=True)
    warning = 'warn: some health checks cannot be excluded: no matches for "nosuch"\n'
    assert text == f"[+]ping ok\n{warning}livez check passed\n"


def test_an_endpoint_without_checks_has_the_check_ping() -> None:
    checks = Checks(health={}, live={}, ready={"shutdown": lambda: True})
    by_endpoint = {name: list(named) for name, named in checks.by_endpoint().items()}
    assert by_endpoint == {"healthz": ["ping"], "livez": ["ping"], "readyz": ["shutdown"]}


@pytest.mark.parametrize(("passes", "status"), [(True, 200), (False, 500)])
async def test_the_answer_of_one_check_is_not_stored_and_is_taken_as_text(
    passes: bool, status: int
) -> None:
    application = web.Application()
    checks = Checks(health={}, live={}, ready={"shutdown": lambda: passes})
    application.add_routes(health_routes(checks, lambda _name, _endpoint, is_ok: None))
    async with TestClient(TestServer(application)) as client:
        answer = await client.get("/readyz/shutdown")
        assert answer.status == status
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Cache-Control"] == "no-cache, private"
