"""Takes the pictures of the documentation: ``python -m tests.browser.pictures``."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from tests.browser.cluster_files import FITTING, PENDING, write_cluster
from tests.browser.conftest import ARGUMENTS, CHROMIUM, NARROW, WIDE
from tests.browser.consoles import ROOT, RunningConsole, console_of

FOLDER = ROOT / "docs" / "pictures"
#: Name, theme, size, address, text that the complete view has.
LARGE = (
    ("console-cluster", "light", WIDE, "/cluster", "100 % of cpu requested"),
    ("console-verdict", "dark", WIDE, f"/cluster?colour=verdict&pod={FITTING}", "fits on"),
)
SMALL = (
    ("console-pending-pod", "light", WIDE, f"/pods/{PENDING}", "Nearest misses"),
    ("console-scores", "dark", WIDE, f"/pods/{FITTING}", "Winner and runner-up"),
    ("console-what-if", "light", WIDE, "/what-if?drain=node-0001", "Before"),
    ("console-narrow", "dark", NARROW, "/nodes/node-0012", "Free room"),
)


def main() -> None:
    """Write the pictures."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "cluster.json")
        with console_of(write_cluster(path, 5_000, 9)) as console:
            _take(console, LARGE)
        with console_of(write_cluster(path, 24, 9)) as console:
            _take(console, SMALL)


def _take(console: RunningConsole, pictures: Any) -> None:
    chromium = next(filter(None, map(shutil.which, CHROMIUM)))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(ARGUMENTS))
        for name, theme, (width, height), address, text in pictures:
            viewport: Any = {"width": width, "height": height}
            page = browser.new_page(viewport=viewport, color_scheme=theme)
            page.goto(console.url)
            page.goto(console.origin + address)
            page.get_by_text(text).first.wait_for()
            if address.startswith("/what-if"):
                page.get_by_role("button", name="Try the changes").click()
                page.get_by_role("heading", name="After").wait_for()
            page.evaluate("document.fonts.ready")
            page.screenshot(path=FOLDER / f"{name}.png")
            page.close()
        browser.close()


if __name__ == "__main__":
    main()
