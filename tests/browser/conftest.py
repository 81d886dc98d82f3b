"""A browser for the tests of the page; they are skipped, with the reason, where there is none."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.cluster_files import write_cluster, write_recording
from tests.browser.consoles import (
    CommandedConsole,
    RunningConsole,
    commanded_console,
    console_of,
)

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--no-first-run",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
)
WAIT_MS = 30_000
WIDE = (1280, 800)
NARROW = (390, 844)

Opener = Callable[..., "Page"]


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """The system's Chromium."""
    pytest.importorskip("axe_playwright_python", reason="make chromium installs it")
    playwright = pytest.importorskip("playwright.sync_api", reason="make chromium installs it")
    found = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if found is None:
        pytest.skip(f"there is no Chromium: none of {', '.join(CHROMIUM)} is in the PATH")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=found, args=list(ARGUMENTS))
        yield opened
        opened.close()


@pytest.fixture(scope="package")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningConsole]:
    """24 nodes in three zones, read from a file."""
    path = tmp_path_factory.mktemp("small") / "cluster.json"
    with console_of(write_cluster(path, 24, 9)) as console:
        yield console


@pytest.fixture(scope="package")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningConsole]:
    """5,000 nodes, read from a file."""
    path = tmp_path_factory.mktemp("large") / "cluster.json"
    with console_of(write_cluster(path, 5_000, 2)) as console:
        yield console


@pytest.fixture(scope="package")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningConsole]:
    """A recording of eight minutes."""
    path = tmp_path_factory.mktemp("recorded") / "r.recording"
    with console_of(write_recording(path)) as console:
        yield console


@pytest.fixture(scope="module")
def live() -> Iterator[CommandedConsole]:
    """A cluster that changes on command."""
    with commanded_console() as console:
        yield console


@pytest.fixture
def opened(browser: Browser) -> Iterator[Opener]:
    """Opens a console at an address; at the end, nothing may have gone wrong in any page.

    Nothing wrong: no exception, no violation of the Content-Security-Policy, no request to another
    origin.
    """
    contexts: list[BrowserContext] = []
    wrong: list[str] = []

    def open_page(
        console: RunningConsole,
        address: str = "/",
        *,
        size: tuple[int, int] = WIDE,
        theme: Any = "light",
    ) -> Page:
        width, height = size
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=theme
        )
        context.set_default_timeout(WAIT_MS)
        contexts.append(context)

        def note_request(url: str) -> None:
            if not url.startswith((console.origin, "data:")):
                wrong.append(f"request to {url}")

        context.on("request", lambda request: note_request(request.url))
        page = context.new_page()
        page.on("pageerror", lambda error: wrong.append(f"exception: {error}"))
        page.on(
            "console",
            lambda said: wrong.append(said.text) if "Content Security" in said.text else None,
        )
        page.goto(console.url)
        if address != "/":
            page.goto(console.origin + address)
        page.get_by_role("heading", level=1).wait_for()
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert wrong == []
