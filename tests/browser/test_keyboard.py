"""The page without a mouse."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.browser.conftest import Opener
from tests.browser.consoles import RunningConsole

if TYPE_CHECKING:
    from playwright.sync_api import Page


def focused(page: Page) -> str:
    """The name of the element that has the focus."""
    return str(
        page.evaluate(
            "document.activeElement.getAttribute('aria-label') || document.activeElement.innerText"
            " || document.activeElement.id"
        )
    )


def test_tab_goes_through_the_page_in_the_order_of_sight(
    opened: Opener, small: RunningConsole
) -> None:
    page = opened(small)
    page.locator(".map-cell").wait_for(state="attached")
    names = []
    for _ in range(12):
        page.keyboard.press("Tab")
        names.append(focused(page).split("\n")[0])
    assert names[:6] == [
        "Skip to the content",
        "Stowage: the cluster",
        "Cluster",
        "Pending",
        "Decisions",
        "What if",
    ]
    assert names[6:8] == ["Use the dark theme", "Keyboard shortcuts"]
    assert names[10] == "search"
    assert names[11].startswith("node-0000, ")


def test_the_skip_link_leads_to_the_content(opened: Opener, small: RunningConsole) -> None:
    page = opened(small)
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "content"


def test_a_node_is_found_opened_and_closed_by_keys(opened: Opener, small: RunningConsole) -> None:
    page = opened(small)
    page.locator(".map-cell").focus()
    page.keyboard.press("ArrowRight")
    assert focused(page).startswith("node-0003, ")
    page.keyboard.press("PageDown")
    assert focused(page).startswith("node-0001, ")
    page.keyboard.press("Enter")
    panel = page.get_by_role("complementary", name="Node node-0001")
    panel.get_by_text("Free room").wait_for()
    assert focused(page) == "node-0001"
    page.keyboard.press("Escape")
    panel.wait_for(state="detached")
    assert focused(page).startswith("node-0001, ")


def test_digits_go_to_views_and_a_question_mark_lists_the_keys(
    opened: Opener, small: RunningConsole
) -> None:
    page = opened(small)
    page.keyboard.press("2")
    page.get_by_role("heading", name="Pending pods").wait_for()
    assert focused(page) == "Pending pods"
    page.keyboard.press("/")
    page.keyboard.type("3?")
    assert page.get_by_label("Find").input_value() == "3?"
    page.keyboard.press("Escape")
    page.get_by_role("heading", name="Pending pods").focus()
    page.keyboard.press("?")
    page.get_by_role("dialog", name="Keyboard shortcuts").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="hidden")


def test_the_pod_chooser_is_a_combobox(opened: Opener, small: RunningConsole) -> None:
    page = opened(small, "/cluster?colour=verdict")
    field = page.get_by_role("combobox", name="Pod", exact=True)
    field.fill("shop/new")
    page.get_by_role("option", name="shop/new").wait_for()
    field.press("Enter")
    page.get_by_text("fits on 19 nodes").wait_for()


def test_the_theme_stays_as_it_was_chosen(opened: Opener, small: RunningConsole) -> None:
    page = opened(small)
    assert page.locator("html").get_attribute("data-theme") == "light"
    page.keyboard.press("t")
    assert page.locator("html").get_attribute("data-theme") == "dark"
    page.reload()
    assert page.locator("html").get_attribute("data-theme") == "dark"
    page.emulate_media(color_scheme="dark")
    page.keyboard.press("t")
    assert page.locator("html").get_attribute("data-theme") == "light"
