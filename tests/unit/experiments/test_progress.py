"""Progress counts experiments and failures: a bar on a terminal, lines of text elsewhere."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from stowage.experiments.experiment import Outcome
from stowage.experiments.progress import shown_progress

ENDED, FAILED = Outcome("a", ""), Outcome("b", "", failure="it raised")


def test_the_bar_counts_what_ended_and_what_failed() -> None:
    written = StringIO()
    console = Console(file=written, force_terminal=True, width=120)
    with shown_progress(console, 4, num_done=1) as advance:
        advance(ENDED)
        advance(FAILED)
    text = written.getvalue()
    assert "3/4" in text
    assert "(1 failed)" in text
    assert "left:" in text


def lines_of(outcomes: list[tuple[float, Outcome]]) -> list[str]:
    """The lines without a terminal, of five trials of which one had ended before."""
    written, times = StringIO(), iter([0.0, *(at for at, _ in outcomes)])
    console = Console(file=written, force_terminal=False, width=120)
    with shown_progress(console, 5, "trials", 1, lambda: next(times)) as advance:
        for _, outcome in outcomes:
            advance(outcome)
    return written.getvalue().splitlines()


def test_without_a_terminal_lines_say_what_ended_and_what_is_left() -> None:
    """Three trials end in 24 seconds: the last one takes 8 more."""
    assert lines_of([(4.0, ENDED), (14.0, FAILED), (24.0, ENDED), (99.0, ENDED)]) == [
        "trials 3/5 (1 failed) 0:00:14 left: 0:00:14",
        "trials 4/5 (1 failed) 0:00:24 left: 0:00:08",
    ]


def test_lines_are_at_least_ten_seconds_apart() -> None:
    assert len(lines_of([(9.0, ENDED), (10.0, ENDED), (19.0, ENDED)])) == 1
