"""What each view shows of a cluster in a file."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.browser.cluster_files import FITTING, PENDING
from tests.browser.conftest import NARROW, Opener
from tests.browser.consoles import RunningConsole

if TYPE_CHECKING:
    from playwright.sync_api import Locator


def test_the_token_leaves_the_address(opened: Opener, small: RunningConsole) -> None:
    page = opened(small)
    assert page.url == f"{small.origin}/"
    assert page.title() == "Cluster · Stowage"


def test_a_click_in_the_map_opens_the_node(opened: Opener, small: RunningConsole) -> None:
    page = opened(small, "/cluster?group=tier")
    page.locator(".map canvas").click(position={"x": 20, "y": 60})
    page.wait_for_url("**/nodes/node-0000?group=tier")
    panel = page.get_by_role("complementary", name="Node node-0000")
    panel.get_by_text("Free room").wait_for()
    assert "16" in panel.get_by_role("region", name="Free room").inner_text()
    assert panel.get_by_role("link", name=FITTING).count() == 1


def test_the_map_takes_group_and_colour_into_its_address(
    opened: Opener, small: RunningConsole
) -> None:
    page = opened(small)
    page.get_by_label("Group by").select_option("tier")
    page.get_by_label("Colour by").select_option("pressure")
    assert page.url.endswith("?group=tier&colour=pressure")
    page.reload()
    page.get_by_text("pressure, not ready or cordoned").wait_for()
    assert page.get_by_label("Group by").input_value() == "tier"


def test_the_map_shows_the_verdict_about_a_pod(opened: Opener, small: RunningConsole) -> None:
    page = opened(small, "/cluster?colour=verdict")
    page.get_by_label("Pod", exact=True).fill("new")
    page.get_by_role("option", name=FITTING).click()
    page.get_by_text("fits on 19 nodes").wait_for()
    page.locator(".map-cell").focus()
    page.get_by_role("button", name=re.compile(r"node-0000, fits, score \d+")).wait_for()
    page.get_by_role("link", name="Explain").click()
    page.get_by_role("heading", name=FITTING).wait_for()


def test_pending_pods_lead_to_their_explanation(opened: Opener, small: RunningConsole) -> None:
    page = opened(small, "/pending")
    page.get_by_role("row", name=PENDING).get_by_text("0/24 nodes are available").wait_for()
    page.get_by_role("link", name=PENDING).click()
    page.get_by_role("region", name="Nodes by reason").wait_for()
    assert "Insufficient cpu" in page.get_by_role("region", name="Nodes by reason").inner_text()
    assert "less cpu" in page.get_by_role("region", name="Nearest misses").inner_text()
    assert "evicts" in page.get_by_role("region", name="Preemption").inner_text()
    assert "NodeResourcesFit" in page.get_by_role("region", name="Waits for").inner_text()


def test_the_explain_table_is_filtered_by_plugin_and_sorted_by_score(
    opened: Opener, small: RunningConsole
) -> None:
    page = opened(small, f"/pods/{FITTING}")
    table = page.get_by_role("table", name="Nodes with verdicts and scores")
    table.wait_for()
    page.get_by_role("combobox", name="Verdict").select_option("TaintToleration")
    page.get_by_text("3 of 24 nodes").wait_for()
    page.get_by_role("combobox", name="Verdict").select_option("fits")
    page.get_by_text("19 of 24 nodes").wait_for()
    head = table.get_by_role("columnheader", name="Total")
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    totals = table.locator("[role=row] b").all_inner_texts()
    assert len(totals) > 10
    assert totals == sorted(totals, key=int, reverse=True)


def test_score_bars_add_up_to_the_total(opened: Opener, small: RunningConsole) -> None:
    page = opened(small, f"/pods/{FITTING}")
    bars = page.get_by_role("region", name="Scores of the best nodes").get_by_role("listitem")
    page.get_by_text("Winner and runner-up").wait_for()
    texts = [each.get_attribute("aria-label") or "" for each in bars.get_by_role("img").all()]
    assert len(texts) == 10
    for text in texts:
        parts, _, total = text.partition("; together ")
        assert sum(int(each.rsplit(" ", 1)[1]) for each in parts.split(", ")) == int(total) > 0


def test_what_if_shows_both_maps_the_differences_and_the_command(
    opened: Opener, small: RunningConsole
) -> None:
    page = opened(small, "/what-if")
    page.locator(".map canvas").click(position={"x": 12, "y": 40})
    page.get_by_role("button", name="Take back: drain node-0000").wait_for()
    page.get_by_label("NodeResourcesFit", exact=True).fill("7")
    page.get_by_role("button", name="Try the changes").click()
    page.get_by_role("heading", name="After").wait_for()
    differences = page.get_by_role("table", name="Differences")
    differences.get_by_text("node node-0000 is cordoned").wait_for()
    command = page.locator(".command pre").inner_text()
    assert command.startswith("stowage what-if --from ")
    assert command.endswith("--drain node-0000 --weights NodeResourcesFit=7")
    assert page.url.endswith("/what-if?drain=node-0000&weights=NodeResourcesFit%3D7")


def test_text_typed_over_all_lines_replaces_them(opened: Opener, small: RunningConsole) -> None:
    editor = opened(small, "/what-if").get_by_role("textbox", name="Manifests")
    paste(editor, "apiVersion: v1\nkind: Pod\n")
    editor.press("Control+a")
    editor.press_sequentially("kind")
    assert editor.inner_text() == "kind"  # and no style was refused, see `opened`


def test_an_empty_group_is_the_zone(opened: Opener, small: RunningConsole) -> None:
    page = opened(small, "/cluster?group=&colour=")
    page.get_by_text("100 % of cpu requested").wait_for()
    assert page.get_by_label("Group by").input_value() == "topology.kubernetes.io/zone"


def test_a_narrow_list_of_pending_pods_has_the_queue_and_the_events(
    opened: Opener, small: RunningConsole
) -> None:
    page = opened(small, "/pending", size=NARROW)
    row = page.get_by_role("row", name=PENDING)
    row.get_by_text("active; waits for NodeAdd").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") == NARROW[0]


def test_the_only_feasible_node_is_shown_with_what_rejects_the_others(
    opened: Opener, recorded: RunningConsole
) -> None:
    page = opened(recorded, "/decisions")
    page.get_by_role("row", name="big").get_by_text("large").wait_for()
    page.get_by_role("row", name="large").get_by_role("link").first.click()
    page.get_by_text("large was the only one that passed Filter").wait_for()
    assert "Insufficient cpu" in page.get_by_role("region", name="Nodes by reason").inner_text()


def paste(editor: Locator, text: str) -> None:
    """Replace the text of the editor as a paste does."""
    editor.press("Control+a")
    editor.evaluate(
        """(element, text) => {
          const clipboardData = new DataTransfer();
          clipboardData.setData('text/plain', text);
          const init = { clipboardData, bubbles: true, cancelable: true };
          element.dispatchEvent(new ClipboardEvent('paste', init));
        }""",
        text,
    )


def test_the_editor_shows_errors_by_line_and_what_it_would_create(
    opened: Opener, small: RunningConsole
) -> None:
    page = opened(small, "/what-if")
    editor = page.get_by_role("textbox", name="Manifests to create, as YAML")
    paste(editor, "apiVersion: v1\nkind: Pod\nmetadata: [")
    page.get_by_text(re.compile(r"^Line \d+: ")).wait_for()
    paste(
        editor,
        "apiVersion: v1\nkind: Pod\nmetadata: {name: added}\n"
        "spec: {containers: [{name: main, image: app}]}\n",
    )
    page.get_by_text("Pod added: 1 pod").wait_for()
    editor.press("Control+Enter")
    page.get_by_role("table", name="Differences").get_by_text("default/added →").wait_for()


def test_a_wrong_token_says_where_the_right_one_is(opened: Opener, small: RunningConsole) -> None:
    page = opened(small)
    page.context.clear_cookies()
    page.get_by_role("link", name="Pending").click()
    page.get_by_role("alert").get_by_text("Open the address that the command printed").wait_for()


def test_time_moves_the_map_the_queue_and_the_decisions(
    opened: Opener, recorded: RunningConsole
) -> None:
    page = opened(recorded, "/time")
    decisions = page.get_by_role("region", name="Decisions until this moment")
    decisions.get_by_role("listitem").first.wait_for()
    page.get_by_role("heading", name="0 pending pods").wait_for()
    slider = page.get_by_role("slider", name="Moment")
    slider.press("Home")
    page.get_by_text("All views show").wait_for()
    page.wait_for_url("**/time?at=*")
    page.get_by_role("heading", name="1 pending pod").wait_for()
    page.get_by_role("link", name="Pending").click()
    page.get_by_role("row", name="default/big").wait_for()
    page.get_by_role("button", name="Show the end").click()
    page.get_by_text("Every pod has a node.").wait_for()


def test_a_decision_is_shown_plugin_by_plugin(opened: Opener, recorded: RunningConsole) -> None:
    page = opened(recorded, "/decisions")
    page.get_by_role("table", name="Decisions, newest first").wait_for()
    page.get_by_role("row", name="default/web-3").get_by_role("link").first.click()
    page.get_by_role("heading", name="Decision about default/web-3").wait_for()
    page.get_by_role("region", name="Winner and runner-up").wait_for()


def test_a_narrow_screen_shows_how_long_a_pod_waits(opened: Opener, small: RunningConsole) -> None:
    page = opened(small, "/pending", size=NARROW)
    header = page.get_by_role("columnheader", name="Pending for")
    header.wait_for()
    box = header.bounding_box()
    assert box is not None
    assert box["x"] + box["width"] <= NARROW[0]


def test_the_pod_chooser_is_one_line_high_on_a_narrow_screen(
    opened: Opener, small: RunningConsole
) -> None:
    page = opened(small, "/cluster?colour=verdict", size=NARROW)
    label = page.get_by_text("Pod", exact=True).bounding_box()
    field = page.get_by_role("combobox", name="Pod", exact=True).bounding_box()
    assert label is not None
    assert field is not None
    assert label["y"] + label["height"] <= field["y"] < label["y"] + 40
