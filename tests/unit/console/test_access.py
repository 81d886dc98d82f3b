"""Who may ask: whoever has the token, from the page itself."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from yarl import URL

from stowage.console.serving import server
from tests.support.builders import make_node
from tests.support.console_server import TOKEN, ConsoleClient, bearer, console_of
from tests.support.consoles import live_cluster

PATHS = ("/", "/cluster", "/api/about", "/api/cluster", "/stream", "/static/app.js", "/api/x")


@pytest.fixture
async def console(tmp_path: Path) -> AsyncIterator[ConsoleClient]:
    static = tmp_path / "static"
    (static / "assets").mkdir(parents=True)
    (static / "index.html").write_text("<!doctype html><title>page</title>")
    (static / "app.js").write_text("export {};")
    (static / "assets" / "style.css").write_text("body {}")
    (tmp_path / "private.txt").write_text("hunter2")
    async with console_of(live_cluster(make_node("n")), static) as client:
        yield client


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("token", ["", "wrong", f"{TOKEN}x", TOKEN[:-1]])
async def test_nothing_is_answered_without_the_token(
    console: ConsoleClient, path: str, token: str
) -> None:
    assert await console.status(path, token=token) == 401


async def test_a_cookie_with_another_token_is_refused(console: ConsoleClient) -> None:
    cookie = f"stowage-console-{console.server.port}=wrong"
    assert await console.status("/api/about", token="", Cookie=cookie) == 401
    cookie = f"stowage-console-1={TOKEN}"
    assert await console.status("/api/about", token="", Cookie=cookie) == 401


async def test_a_token_that_is_no_text_is_refused(console: ConsoleClient) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", console.server.port)
    host = f"127.0.0.1:{console.server.port}".encode()
    writer.write(b"GET / HTTP/1.1\r\nHost: %b\r\nAuthorization: Bearer \xff\xfe\r\n\r\n" % host)
    assert b" 401 " in await reader.readline()
    writer.close()
    await writer.wait_closed()


async def test_the_printed_address_gives_a_strict_cookie_and_hides_the_token(
    console: ConsoleClient,
) -> None:
    async with console.session.get(console.server.url, allow_redirects=False) as response:
        assert (response.status, response.headers["Location"]) == (303, "/")
        cookie = response.headers["Set-Cookie"]
        assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))
    async with console.session.get(console.url("/api/about")) as response:
        assert response.status == 200
    async with console.session.get(console.server.url) as response:
        assert (response.status, response.url.query_string) == (200, "")


async def test_an_address_of_a_view_keeps_its_parameters(console: ConsoleClient) -> None:
    url = console.url(f"/pods/a/b?x=1&token={TOKEN}&y=%26")
    async with console.session.get(url, allow_redirects=False) as response:
        assert response.headers["Location"] == "/pods/a/b?x=1&y=%26"


async def test_the_redirect_cannot_lead_elsewhere(console: ConsoleClient) -> None:
    url = console.url(f"//evil.example/?token={TOKEN}")
    async with console.session.get(url, allow_redirects=False) as response:
        assert response.headers["Location"] == "/evil.example/"


async def test_an_address_opened_from_a_file_is_not_redirected(console: ConsoleClient) -> None:
    headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    async with console.session.get(console.server.url, headers=headers) as response:
        assert (response.status, response.headers["Refresh"]) == (200, "0; url=/")


async def test_a_wrong_token_in_the_address_is_refused(console: ConsoleClient) -> None:
    assert await console.status("/?token=wrong", token="") == 401


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "evil.example:80", ""]
)
async def test_another_host_is_refused(console: ConsoleClient, host: str) -> None:
    assert await console.status("/api/about", Host=host) == 421
    assert await console.status(f"/?token={TOKEN}", token="", Host=host) == 421


async def test_localhost_is_this_server(console: ConsoleClient) -> None:
    assert await console.status("/api/about", Host=f"localhost:{console.server.port}") == 200


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("Origin", "https://evil.example"),
        ("Origin", "null"),
        ("Origin", "http://127.0.0.1:1"),
        ("Sec_Fetch_Site", "cross-site"),
        ("Sec_Fetch_Site", "same-site"),
    ],
)
@pytest.mark.parametrize("path", ["/api/about", "/stream", "/static/app.js"])
async def test_another_site_is_refused(
    console: ConsoleClient, path: str, header: str, value: str
) -> None:
    assert await console.status(path, **{header: value}) == 403


async def test_the_page_itself_is_served(console: ConsoleClient) -> None:
    origin = console.url("")
    assert await console.status("/api/about", Origin=origin, Sec_Fetch_Site="same-origin") == 200


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("token", [TOKEN, ""])
async def test_every_answer_has_the_security_headers(
    console: ConsoleClient, path: str, token: str
) -> None:
    async with console.session.get(console.url(path), headers=bearer(token)) as response:
        policy = response.headers["Content-Security-Policy"].split("; ")
        assert "default-src 'none'" in policy
        assert not [each for each in policy if "unsafe" in each or "http" in each or "*" in each]
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert response.headers["Referrer-Policy"] == "no-referrer"
        assert "Access-Control-Allow-Origin" not in response.headers


@pytest.mark.parametrize("path", ["/", "/cluster", "/pods/default/p", "/decisions?x=1", "/a/b/c"])
async def test_every_view_is_the_page(console: ConsoleClient, path: str) -> None:
    async with console.session.get(console.url(path), headers=bearer()) as response:
        assert await response.text() == "<!doctype html><title>page</title>"
        assert response.content_type == "text/html"


async def test_static_files_have_their_types(console: ConsoleClient) -> None:
    for path, kind in {"app.js": "text/javascript", "assets/style.css": "text/css"}.items():
        url = console.url(f"/static/{path}")
        async with console.session.get(url, headers=bearer()) as response:
            assert (response.status, response.content_type) == (200, kind)
            tag = response.headers["ETag"]
        assert await console.status(f"/static/{path}", If_None_Match=tag) == 304


@pytest.mark.parametrize(
    "path",
    [
        "/static/../private.txt",
        "/static/%2e%2e/private.txt",
        "/static/..%2fprivate.txt",
        "/static/assets/..%2f..%2fprivate.txt",
        "/static/%2fetc%2fpasswd",
        "/static//etc/passwd",
        "/static/",
        "/static/assets",
        "/static/none.js",
    ],
)
async def test_no_path_leads_out_of_the_folder(console: ConsoleClient, path: str) -> None:
    from yarl import URL

    url = URL(console.url(path), encoded=True)
    async with console.session.get(url, headers=bearer()) as response:
        assert "hunter2" not in await response.text()
        assert response.status == 404 or response.content_type == "text/html"


async def test_without_a_page_the_interface_still_answers() -> None:
    async with console_of(live_cluster()) as console:
        await console.get("/api/about")
        refusal = await console.get("/", want=404)
        assert "has no page" in refusal["error"]["message"]


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
async def test_nothing_can_be_written(console: ConsoleClient, method: str) -> None:
    assert await console.status("/api/cluster", method) in (404, 405)
    assert await console.status("/cluster", method) == 405


async def test_a_form_cannot_ask(console: ConsoleClient) -> None:
    async with console.session.post(
        console.url("/api/what-if"), headers=bearer(), data={"drain": "n"}
    ) as response:
        assert response.status == 400


@pytest.mark.parametrize("path", ["/%0d%0aSet-Cookie:%20a=b", "/%1B", "/%0aX"])
async def test_an_address_cannot_add_a_header(console: ConsoleClient, path: str) -> None:
    url = URL(console.url(f"{path}?token={TOKEN}"), encoded=True)
    async with console.session.get(url, allow_redirects=False) as response:
        assert response.status == 303
        assert response.headers["Location"].lower() == path.lower()
        assert [*response.headers].count("Set-Cookie") == 1


def test_the_page_makes_no_html_of_text() -> None:
    """Names of objects reach the page as text; the sources name no way to make elements of it."""
    sources = Path(server.__file__).parents[1] / "page" / "src"
    texts = {path: path.read_text(encoding="utf-8") for path in sources.rglob("*.ts*")}
    assert len(texts) > 20
    ways = re.compile(
        r"innerHTML|outerHTML|dangerouslySet|insertAdjacentHTML|document\.write|eval\("
    )
    assert [path for path, text in texts.items() if ways.search(text)] == []
