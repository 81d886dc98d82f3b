"""``stowage console``: the browser, and the decisions of a scheduler."""

from __future__ import annotations

import asyncio
import stat
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from typer.testing import CliRunner

from stowage.api.decisions import Decision, DecisionQuery
from stowage.cli.ask.decision_source import UnreadableDecisions
from stowage.cli.console import app, following
from stowage.cli.console.browser import open_page
from stowage.cli.console.following import follow_decisions
from stowage.console.stream.feed import Feed
from stowage.console.stream.hub import Hub
from tests.support.consoles import decision, live_cluster

URL = "http://127.0.0.1:1/?token=a&b"


def test_the_browser_opens_a_private_file_that_leads_to_the_page(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened: list[Path] = []

    def note(uri: str) -> bool:
        opened.append(Path(unquote(urlsplit(uri).path)))
        return True

    monkeypatch.setattr("webbrowser.open", note)
    with open_page(URL):
        (file,) = opened
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert "url=http://127.0.0.1:1/?token=a&amp;b" in file.read_text(encoding="utf-8")
    assert not file.exists()


class Scheduler:
    """Gives pages of decisions, or fails; ends the reading after the last one."""

    def __init__(self, *pages: list[Decision] | str) -> None:
        self._pages = list(pages)

    def latest(self, query: DecisionQuery) -> list[Decision]:
        return self.following(query)

    def following(self, _query: DecisionQuery) -> list[Decision]:
        if not self._pages:
            raise StopFollowing
        page = self._pages.pop(0)
        if isinstance(page, str):
            raise UnreadableDecisions(page)
        return page


class StopFollowing(Exception):  # noqa: N818 - no error
    """The test has seen enough."""


async def test_decisions_of_a_scheduler_are_followed_through_outages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(following, "POLL_S", 0.0)
    cluster, said = live_cluster(), list[str]()
    feed = Feed(Hub("e"), cluster, 0.0)
    scheduler = Scheduler(
        [decision(1)], [decision(2), decision(3)], "away", "away", [decision(4)], "away again"
    )
    with pytest.raises(StopFollowing):
        await follow_decisions(scheduler, cluster.history, feed, said.append)
    assert [each.id for each in cluster.history.newest(9)] == ["d-4", "d-3", "d-2", "d-1"]
    assert said == ["away; trying again", "away again; trying again"]


async def test_decisions_that_cannot_be_read_at_the_start_end_the_console() -> None:
    cluster = live_cluster()
    reading = follow_decisions(
        Scheduler("wrong token"), cluster.history, Feed(Hub("e"), cluster, 0.0), print
    )
    with pytest.raises(UnreadableDecisions, match="wrong token"):
        await asyncio.wait_for(reading, 60)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--port", "70000"], "--port"),
        (["--from", "FOLDER", "--server", "https://x:1"], "no other decisions"),
        (["--from", "FOLDER"], "expected a recording"),
        (["--server", "http://x"], "expected https://HOST:PORT"),
    ],
)
def test_flags_that_cannot_be_are_refused(flags: list[str], message: str, tmp_path: Path) -> None:
    words = [str(tmp_path) if flag == "FOLDER" else flag for flag in flags]
    result = CliRunner().invoke(app, words)
    assert result.exit_code in (1, 2)
    assert message in " ".join(result.output.split())


@pytest.mark.parametrize("kubeconfig", [b"{}", b"\xa9"])
def test_an_address_is_printed_only_of_a_cluster_that_answers(
    kubeconfig: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "kubeconfig"
    path.write_bytes(kubeconfig)
    result = CliRunner().invoke(app, ["--kubeconfig", str(path)])
    assert result.exit_code == 1
    assert f"the kubeconfig {path} cannot be used" in " ".join(result.output.split())
    assert "the console is at" not in result.output
