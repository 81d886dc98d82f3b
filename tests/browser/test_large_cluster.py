"""5,000 nodes in the page."""

from __future__ import annotations

from collections.abc import Callable

from tests.browser.cluster_files import PENDING
from tests.browser.conftest import NARROW, Opener
from tests.browser.consoles import RunningConsole

DRAWN = "performance.getEntriesByName('stowage-map-draw').map(each => each.duration)[0]"


def test_a_map_of_5000_nodes_is_drawn(
    opened: Opener, large: RunningConsole, record_testsuite_property: Callable[[str, object], None]
) -> None:
    """The time of the drawing is reported, not judged: machines differ."""
    page = opened(large)
    page.get_by_text("5,000", exact=True).wait_for()
    page.wait_for_function(DRAWN)
    record_testsuite_property("map_draw_ms", page.evaluate(DRAWN))
    colours = page.evaluate(
        """() => {
          const canvas = document.querySelector('.map canvas');
          const data = canvas.getContext('2d')
            .getImageData(0, 0, canvas.width, canvas.height).data;
          const found = new Set();
          for (let at = 0; at < data.length; at += 4) {
            if (data[at + 3] === 255) found.add(`${data[at]},${data[at + 1]},${data[at + 2]}`);
          }
          return found.size;
        }"""
    )
    assert colours > 3


def test_5000_verdicts_stay_a_few_elements(opened: Opener, large: RunningConsole) -> None:
    page = opened(large, f"/pods/{PENDING}")
    table = page.get_by_role("table", name="Nodes with verdicts and scores")
    page.get_by_text("5,000 of 5,000 nodes").wait_for()
    assert table.get_attribute("aria-rowcount") == "5001"
    assert table.get_by_role("row").count() < 60
    table.press("End")
    table.get_by_role("row", name="node-4999").wait_for()
    assert table.get_by_role("row").count() < 60


def test_a_large_map_scrolls_on_a_narrow_screen(opened: Opener, large: RunningConsole) -> None:
    page = opened(large, size=NARROW)
    map_ = page.locator(".map")
    map_.wait_for()
    assert map_.evaluate("each => each.scrollHeight > each.clientHeight")
    page.locator(".map-cell").focus()
    page.keyboard.press("End")
    page.wait_for_function("document.querySelector('.map').scrollTop > 0")
