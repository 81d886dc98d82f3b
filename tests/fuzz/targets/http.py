"""The endpoints of the scheduler, and the server of the console."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote

import yaml
from aiohttp import web

from stowage.api.decisions import RESULTS
from stowage.console.clusters.live import LiveCluster
from stowage.console.serving.forked import AnswerRefused, ChildProcesses
from stowage.console.serving.questions import Questions
from stowage.console.serving.server import ConsoleServer
from stowage.console.stream.hub import Hub
from stowage.operator.decisions.records import DecisionIds
from stowage.operator.decisions.store import DecisionStore
from stowage.operator.serving.connection_limits import ConnectionLimits, LimitedConnection
from stowage.operator.serving.delegated_access import AccessOptions, DelegatedAccess
from stowage.operator.serving.health import Checks
from stowage.operator.serving.server import Content, Server, ServingOptions
from tests.fuzz.campaign import Finding
from tests.fuzz.http_driver import HttpDriver
from tests.fuzz.mutations import ODD_VALUES, mutated_bytes, mutated_text, mutated_tree
from tests.fuzz.objects import SAMPLES
from tests.support.builders import make_node, make_pod
from tests.support.console_server import TOKEN
from tests.support.consoles import live_cluster
from tests.support.decisions import attempt, recorded, refused
from tests.support.fake_api import FakeApiClient, FakeTime

_ODD_TEXTS = (
    *(
        "",
        "0",
        "-1",
        "1e9",
        "9" * 400,
        "\u0661",
        "2026-05-01T12:00:00Z",
        "nan",
        "inf",
        "-inf",
        "1e308",
    ),
    *("a/b", "../../etc/passwd", "..%2f", "<script>", "\r\nX: y", "\x00", "\x1b[2J", "\ud83d"),
    *("\u202e\U0001f6a2", "a" * 2000, "n0", "default/waits", "p-3", "p-999", "scheduled"),
)
_TOKENS = (
    *(b"\r\n", b"\r\n\r\n", b"\n", b"\x00", b" ", b"%0d%0aX:%20y", b"%", b"%zz", b"//", b"\xff"),
    *(b"Content-Length: 99\r\n", b"Content-Length: -1\r\n", b"Transfer-Encoding: chunked\r\n"),
    *(b"Expect: 100-continue\r\n", b"Connection: Upgrade\r\nUpgrade: websocket\r\n", b"HTTP/9.9"),
    *(b"Content-Encoding: gzip\r\n", b"0\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"/../"),
)
_TIMES = ("2026-05-01T12:00:00Z", "1767225600", "")
_STATUSES = frozenset(
    {100, 200, 303, 304, 400, 401, 403, 404, 405, 408, 413, 415, 417, 421, 422, 431}
)


def request_bytes(
    method: str, path: str, headers: Sequence[tuple[str, str]], body: bytes = b""
) -> bytes:
    """A request as it is on the wire."""
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]
    head = "\r\n".join(lines).encode(errors="surrogateescape") + b"\r\n"
    length = b"Content-Length: %d\r\n" % len(body) if body else b""
    return head + length + b"\r\n" + body


def _odd(rng: Random) -> str:
    return quote(rng.choice(_ODD_TEXTS), safe=rng.choice(("", "/")), errors="surrogatepass")


def _query(rng: Random, names: Sequence[str], valid: Sequence[str] = ()) -> str:
    """A query string of these names, or of none."""
    given = []
    for _ in range(rng.choice((0, 1, 1, 2, 5))):
        name = "x" if rng.random() < 0.1 or not names else rng.choice(names)
        is_valid = valid and rng.random() < 0.7
        given.append(f"{name}={rng.choice(valid) if is_valid else _odd(rng)}")
    return "?" + "&".join(given) if given else ""


class DecisionsTarget:
    """Requests to the scheduler's endpoints, most of them for decisions."""

    name = "decisions"

    def __init__(self) -> None:
        store = DecisionStore(DecisionIds("p"))
        for number in range(1, 30):
            make = refused if number % 3 == 0 else attempt
            store.add(recorded(make(number, f"default/p{number}"), number))
        limits = ConnectionLimits()
        self._driver = HttpDriver(
            lambda: _endpoints(store, limits), lambda inner: LimitedConnection(inner, limits)
        )

    def make(self, rng: Random) -> bytes:
        if rng.random() < 0.8:
            names = ("namespace", "pod", "node", "result", "limit", "after")
            valid = ("default", "p1", "default/p2", "n1", *RESULTS, "1", "1000", "p-3")
            path = "/debug/decisions" + _query(rng, names, valid)
        else:
            path = rng.choice(
                (
                    *("/healthz", "/readyz", "/livez", "/readyz/x", "/metrics", "/configz"),
                    *("/debug/profile", "/debug/queue", "/debug/cache", "/flagz", "/statusz", "/x"),
                )
            ) + _query(rng, ("verbose", "exclude", "seconds"))
        data = request_bytes("GET", path, [("Host", "h")])
        return mutated_bytes(rng, data, _TOKENS) if rng.random() < 0.3 else data

    def run(self, given: bytes) -> str:
        statuses, written = self._driver.send(given)
        _check_statuses(statuses, written)
        if b"Traceback" in written:
            raise Finding("the answer has a traceback")
        return "accepted" if 200 in statuses else "rejected"

    def close(self) -> None:
        self._driver.close()


async def _endpoints(store: DecisionStore, limits: ConnectionLimits) -> web.Application:
    content = Content(
        metrics=lambda: b"a 1\n",
        resource_metrics=lambda: b"",
        configz=lambda: {"componentconfig": {}},
        flags={"v": "0"},
        dump=lambda: {"nodes": {}, "queue": {}},
        decisions=store,
        clock=FakeTime().clock,
        checks=Checks(health={}, live={}, ready={}),
    )
    access = DelegatedAccess(FakeApiClient(), AccessOptions(always_allow_paths=("/*",)), lambda: 0)
    return Server(ServingOptions(port=0), content, access, limits).app


def _check_statuses(statuses: Sequence[int], written: bytes) -> None:
    if not set(statuses) <= _STATUSES:
        raise Finding(f"an unexpected status: {statuses} {written!r:.300}")


class _InThisProcess(ChildProcesses):
    """Answers in this process instead of a child."""

    async def answer(
        self, compute: Callable[[], bytes], refusal: Callable[[Exception], bytes | None]
    ) -> bytes:
        try:
            return compute()
        except Exception as error:
            body = refusal(error)
            if body is None:
                raise
            raise AnswerRefused(body) from error


class ConsoleTarget:
    """Requests to the console: none is answered without the token, and none fails.

    Without the token in a request, no answer has the status 200.
    """

    name = "console"

    def __init__(self) -> None:
        self._driver = HttpDriver(self._app)
        self._is_changed = False

    def make(self, rng: Random) -> bytes:
        if self._is_changed:
            self._questions.source = _cluster()
            self._is_changed = False
        method, path, body = _question(rng)
        data = request_bytes(method, path, _headers(rng), body)
        return mutated_bytes(rng, data, _TOKENS) if rng.random() < 0.25 else data

    def run(self, given: bytes) -> str:
        if b"/api/what-if" in given:
            self._is_changed = True  # such a question changes the cluster of its process
        statuses, written = self._driver.send(given)
        _check_statuses(statuses, written)
        if b"Traceback" in written:
            raise Finding("the answer has a traceback")
        if 200 in statuses and TOKEN.encode() not in given:
            raise Finding("answered without the token")
        if 200 in statuses and b"Content-Security-Policy: default-src 'none'" not in written:
            raise Finding("an answer without a Content-Security-Policy")
        return "accepted" if 200 in statuses else "rejected"

    def close(self) -> None:
        self._driver.close()

    async def _app(self) -> web.Application:
        hub = Hub("e")
        self._questions = Questions(_cluster(), _InThisProcess(), lambda: hub.announced)
        return ConsoleServer(self._questions, hub, TOKEN, _PAGE).app


_PAGE = Path(__file__).parents[3] / "scheduler/stowage/console/static"


def _cluster() -> LiveCluster:
    return live_cluster(
        *(make_node(f"n{number}", zone="ab"[number % 2], cpu="4") for number in range(3)),
        make_pod("runs", cpu="1", node_name="n0"),
        make_pod("waits", cpu="99"),
    )


def _headers(rng: Random) -> list[tuple[str, str]]:
    """Headers of a request of the page, or of others."""
    kind = rng.random()
    given = [("Host", rng.choice(("127.0.0.1:0",) * 8 + ("localhost:0", "evil.example", "")))]
    if kind < 0.6:
        given.append(("Authorization", f"Bearer {TOKEN}"))
    elif kind < 0.8:
        given.append(("Cookie", f"stowage-console-0={TOKEN}"))
    elif kind < 0.9:
        given.append(("Authorization", rng.choice(("Bearer x", "Basic x", "Bearer \udcff", ""))))
    for name, values in (
        ("Origin", ("http://127.0.0.1:0", "null", "http://evil.example")),
        ("Sec-Fetch-Site", ("same-origin", "cross-site", "x")),
        ("Content-Type", ("application/json",) * 4 + ("text/plain", "a;b;c=\x01", "")),
        ("Accept-Encoding", ("gzip", "br", "gzip;q=0", "*")),
        ("If-None-Match", ("*", '"x"', "W/")),
        ("Last-Event-ID", ("e-0", "e-99999999999999999999", "x", "e-", "\u0661")),
    ):
        if rng.random() < (0.7 if name == "Content-Type" else 0.1):
            given.append((name, rng.choice(values)))
    return given


def _question(rng: Random) -> tuple[str, str, bytes]:
    """Method, path and body."""
    kind = rng.randrange(12)
    if kind == 0:
        return "POST", "/api/what-if", _json(rng, _changes(rng))
    if kind in (1, 2):
        return "POST", "/api/manifests", _json(rng, {"manifests": _manifests(rng)})
    part = rng.choice(("n0", "default/runs", "default/waits", "a/b", _odd(rng), "d-1"))
    path, names, known = rng.choice(
        (
            *((each, (), ()) for each in ("/", "/api/about", "/api/timeline", "/stream", "/api/x")),
            ("/api/cluster", ("at", "group"), (*_TIMES, "topology.kubernetes.io/zone")),
            ("/api/verdicts", ("at", "pod"), (*_TIMES, "default/waits")),
            ("/api/pods", ("at", "q", "limit"), (*_TIMES, "run", "10")),
            ("/api/pending", ("q", "limit", "offset", "sort"), ("wai", "10", "since", "pod")),
            ("/api/decisions", ("limit", "result", "pod", "before"), ("10", *RESULTS)),
            ("/api/decisions/stats", ("at",), _TIMES),
            (f"/api/nodes/{part}", ("at",), _TIMES),
            (f"/api/pods/{part}", ("at",), _TIMES),
            (f"/api/decisions/{part}", ("at",), _TIMES),
            (f"/static/{part}", (), ()),
            (f"/{part}", ("token", "x"), (TOKEN,)),
        )
    )
    query = _query(rng, names, known) if names or rng.random() < 0.1 else ""
    return rng.choice(("GET",) * 19 + ("POST",)), path + query, b""


def _json(rng: Random, value: Any) -> bytes:
    if rng.random() < 0.4:
        value = mutated_tree(rng, value)
    data = json.dumps(value).encode()
    return mutated_bytes(rng, data) if rng.random() < 0.2 else data


def _changes(rng: Random) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    for name, values in (
        ("cordon", (["n0"], ["n0", "n0"], ["gone"], [])),
        ("drain", (["n1"], ["gone"])),
        ("removeNodes", (["n2"], ["n0", "n1", "n2"])),
        ("addNodes", ({"count": 2, "like": "n0"}, {"count": 1, "like": "gone"})),
        ("weights", ({"NodeResourcesFit": 5}, {"Nothing": 1}, {"ImageLocality": 0})),
        ("group", ("topology.kubernetes.io/zone", "", "x")),
        ("at", ("", "2026-05-01T12:00:00Z", "x")),
        ("manifests", (_manifests(rng),)),
    ):
        if rng.random() < 0.4:
            changes[name] = rng.choice((*values, rng.choice(ODD_VALUES)))
    return changes


@lru_cache(maxsize=1)
def _documents() -> tuple[str, ...]:
    """Manifests of pods and workloads."""
    pod = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}
    meta = {"name": "w", "namespace": "default"}
    made: list[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": pod},
        *(
            {
                "apiVersion": "apps/v1",
                "kind": kind,
                "metadata": meta,
                "spec": {"replicas": 2, "template": {"metadata": {"labels": {}}, "spec": pod}},
            }
            for kind in ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job")
        ),
        *({"kind": kind, **sample} for kind, sample in SAMPLES.items() if kind != "Pod"),
    ]
    return tuple(yaml.safe_dump(each, sort_keys=False) for each in made)


def _manifests(rng: Random) -> str:
    text = rng.choice(_documents())
    if rng.random() < 0.2:
        text += "---\n" + rng.choice(_documents())
    if rng.random() < 0.4:
        return mutated_text(rng, text, (b"&a ", b"*a", b"- ", b"9" * 5000, b"!!binary "))
    return yaml.safe_dump(mutated_tree(rng, yaml.safe_load(text.partition("---")[0])))
