"""The page of flags lists the feature gates that have an effect."""

from __future__ import annotations

import re
from pathlib import Path

from stowage.api.config.feature_gates import GATES_WITH_EFFECT

PAGE = Path(__file__).parents[2] / "docs/reference/flags.md"


def test_the_feature_gates_with_an_effect_are_listed() -> None:
    section = (
        PAGE.read_text().partition("## Feature gates with an effect\n")[2].partition("<!--")[0]
    )
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == sorted(GATES_WITH_EFFECT)
