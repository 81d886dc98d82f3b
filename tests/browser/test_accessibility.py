"""What axe finds in each view, in both themes and at both widths."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.cluster_files import FITTING, PENDING
from tests.browser.conftest import NARROW, WIDE, Opener
from tests.browser.consoles import RunningConsole

if TYPE_CHECKING:
    from playwright.sync_api import Page

KEPT = {"resultTypes": ["violations"]}
RULES = KEPT | {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]}
CONTRAST = KEPT | {"runOnly": ["color-contrast"]}

VIEWS = {
    "/cluster": "100 % of cpu requested",
    "/cluster?colour=pressure": "pressure, not ready or cordoned",
    f"/cluster?colour=verdict&pod={FITTING}": "fits on 19 nodes",
    "/nodes/node-0001": "Free room",
    "/pending": "ml/train",
    f"/pods/{PENDING}": "Nearest misses",
    f"/pods/{FITTING}": "Winner and runner-up",
    "/decisions": "No decision is known",
    "/what-if?drain=node-0001": "drain node-0001",
}


def violations(page: Page, options: dict[str, Any]) -> str:
    """What axe finds; empty if it finds nothing."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    found = axe.run(page, options=options)
    return str(found.generate_report()) if found.violations_count else ""


@pytest.mark.parametrize("size", [WIDE, NARROW])
def test_axe_finds_nothing_and_nothing_is_wider_than_the_screen(
    opened: Opener, small: RunningConsole, size: tuple[int, int]
) -> None:
    page = opened(small, size=size)
    for address, text in VIEWS.items():
        page.goto(small.origin + address)
        page.get_by_text(text).first.wait_for()
        assert violations(page, RULES) == "", address
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), address


def test_contrasts_are_as_good_in_the_dark(opened: Opener, small: RunningConsole) -> None:
    """What else axe looks at is the same in both themes."""
    page = opened(small, theme="dark")
    for address, text in VIEWS.items():
        page.goto(small.origin + address)
        page.get_by_text(text).first.wait_for()
        assert violations(page, CONTRAST) == "", address


def test_axe_finds_nothing_in_the_views_of_a_recording(
    opened: Opener, recorded: RunningConsole
) -> None:
    page = opened(recorded)
    for address, text in {"/time": "Last decisions", "/decisions": "default/web-3"}.items():
        page.goto(recorded.origin + address)
        page.get_by_text(text).first.wait_for()
        assert violations(page, RULES) == "", address
