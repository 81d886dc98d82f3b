"""What axe finds in each view, in both themes and at both widths."""

from __future__ import annotations

import json

import pytest

from tests.browser.cluster_files import FITTING, PENDING
from tests.browser.conftest import NARROW, WIDE, Opener
from tests.browser.consoles import RunningConsole

RULES = json.dumps({"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]})

VIEWS = {
    "/cluster": "100 % of cpu requested",
    "/cluster?colour=pressure": "pressure, not ready or cordoned",
    f"/cluster?colour=verdict&pod={FITTING}": "fits on 18 nodes",
    "/nodes/node-0001": "Free room",
    "/pending": "ml/train",
    f"/pods/{PENDING}": "Nearest misses",
    f"/pods/{FITTING}": "Winner and runner-up",
    "/decisions": "No decision is known",
    "/what-if?drain=node-0001": "drain node-0001",
}


@pytest.mark.parametrize(
    ("theme", "size"), [("light", WIDE), ("dark", WIDE), ("light", NARROW), ("dark", NARROW)]
)
def test_axe_finds_nothing_and_nothing_is_wider_than_the_screen(
    opened: Opener, small: RunningConsole, theme: str, size: tuple[int, int]
) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page = opened(small, theme=theme, size=size)
    for address, text in VIEWS.items():
        page.goto(small.origin + address)
        page.get_by_text(text).first.wait_for()
        found = axe.run(page, options=json.loads(RULES))
        assert found.violations_count == 0, f"{address}: {found.generate_report()}"
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), address


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_in_the_views_of_a_recording(
    opened: Opener, recorded: RunningConsole, theme: str
) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page = opened(recorded, theme=theme)
    for address, text in {"/time": "Last decisions", "/decisions": "default/web-3"}.items():
        page.goto(recorded.origin + address)
        page.get_by_text(text).first.wait_for()
        found = axe.run(page, options=json.loads(RULES))
        assert found.violations_count == 0, f"{address}: {found.generate_report()}"
