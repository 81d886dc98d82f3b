"""The page follows a cluster that changes, and heals when the connection breaks."""

from __future__ import annotations

from stowage.console.clusters.source import CONNECTED, RECONNECTING
from tests.browser.conftest import Opener
from tests.browser.consoles import CommandedConsole


def test_a_cordoned_node_shows_at_once(opened: Opener, live: CommandedConsole) -> None:
    page = opened(live, "/cluster?colour=pressure")
    page.get_by_role("status").get_by_text("live").wait_for()
    page.locator(".map-cell").focus()
    page.get_by_role("button", name="node-0, healthy").wait_for()
    live.do("cordon 0")
    page.get_by_role("button", name="node-0, cordoned").wait_for()


def test_the_number_of_pending_pods_follows(opened: Opener, live: CommandedConsole) -> None:
    page = opened(live, "/pending")
    page.get_by_role("status").get_by_text("live").wait_for()
    page.get_by_text("Every pod has a node.").wait_for()
    live.do("wait 3")
    page.get_by_role("row", name="default/waits-2").wait_for()
    page.get_by_role("link", name="Pending 3").wait_for()


def test_a_feed_of_thousands_of_decisions_stays_bounded(
    opened: Opener, live: CommandedConsole
) -> None:
    page = opened(live, "/decisions")
    table = page.get_by_role("table", name="Decisions, newest first")
    page.get_by_role("status").get_by_text("live").wait_for()
    for _ in range(20):
        last = live.do("decide 100")
        table.get_by_role("row", name=last).wait_for()
    page.get_by_text("more were made than a page can show").wait_for()
    rows = int(table.get_attribute("aria-rowcount") or 0) - 1
    assert 20 <= rows <= 300
    assert table.get_by_role("row").count() < 40


def test_a_lost_connection_is_said_and_heals(opened: Opener, live: CommandedConsole) -> None:
    page = opened(live, "/decisions")
    page.get_by_role("status").get_by_text("live").wait_for()
    live.do("stop")
    page.get_by_text("The connection to the console's server is lost").wait_for()
    page.get_by_role("status").get_by_text("connection lost").wait_for()
    last = live.do("decide 1")
    live.do("start")
    page.get_by_role("status").get_by_text("live").wait_for()
    page.get_by_role("row", name=last).wait_for()
    assert page.get_by_text("The connection to the console's server is lost").count() == 0


def test_a_lost_api_server_is_said_until_it_is_back(opened: Opener, live: CommandedConsole) -> None:
    page = opened(live, "/decisions")
    page.get_by_role("status").get_by_text("live").wait_for()
    live.do(f"upstream {RECONNECTING}")
    said = page.get_by_text("The server reconnects to the cluster: waits to read Node again")
    said.wait_for()
    live.do(f"upstream {CONNECTED}")
    said.wait_for(state="detached")


def test_a_decision_seen_from_outside_compares_the_node_of_the_pod(
    opened: Opener, live: CommandedConsole
) -> None:
    page = opened(live, "/decisions")
    pod = live.do("decide 3")
    row = page.get_by_role("row", name=pod)
    row.get_by_role("link").first.click()
    page.get_by_role("heading", name=f"Decision about {pod}").wait_for()
    node = page.locator(".facts").get_by_role("link", name="node-").inner_text()
    compared = page.get_by_label("Winner and runner-up").get_by_role("columnheader")
    compared.first.wait_for()
    _, winner, runner_up, _ = compared.all_inner_texts()
    assert winner == node != runner_up
