"""The bar counts experiments and failures, on a terminal only."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from stowage.experiments.experiment import Outcome
from stowage.experiments.progress import shown_progress


@pytest.mark.parametrize("is_terminal", [True, False])
def test_the_bar_counts_what_ended_and_what_failed(is_terminal: bool) -> None:
    written = StringIO()
    console = Console(file=written, force_terminal=is_terminal, width=120)
    with shown_progress(console, 4, num_done=1) as advance:
        advance(Outcome("a", ""))
        advance(Outcome("b", "", failure="it raised"))
    text = written.getvalue()
    assert ("3/4" in text and "(1 failed)" in text and "left:" in text) == is_terminal
    assert is_terminal or text == ""
