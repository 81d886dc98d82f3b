"""A pod takes over what was left for the pod before only if all plugins promise that it may."""

from __future__ import annotations

from typing import Any

import pytest

from stowage.framework import PluginTraits, PreparedCycle, Reads
from stowage.framework.runtime.class_repeats import ClassRepeats


class _Plugin:
    def __init__(self, name: str, **traits: Any) -> None:
        self.name = name
        self.traits = PluginTraits(**traits)


SKIPS = _Plugin("Skips", skips_per_class=True)
KEPT = _Plugin("Kept", filter_reads=Reads.NODE, score_reads=Reads.USAGE)
COUNTS = _Plugin("Counts", skips_per_class=True, score_reads=Reads.NODES)
PLAIN = _Plugin("Plain")


def left(skipped: str = "", uncached: str = "", *, was_scored: bool = True) -> PreparedCycle:
    names = frozenset(skipped.split())
    return PreparedCycle({}, names, names if was_scored else None, frozenset(uncached.split()))


@pytest.mark.parametrize(
    ("plugins", "prepared", "filtered", "scored"),
    [
        ([SKIPS, KEPT], left("Skips"), True, True),
        ([SKIPS, KEPT], left(), False, False),
        ([KEPT], left("Kept"), False, False),
        ([PLAIN], left(), False, False),
        ([PLAIN], left("Plain"), False, False),
        ([COUNTS], left(), False, True),
        ([KEPT], left(uncached="Kept"), True, False),
        ([SKIPS, KEPT], left("Skips", was_scored=False), True, False),
        ([], left(), True, True),
    ],
    ids=[
        "one promises to skip again, the other is kept",
        "a plugin did not skip that reads the cluster",
        "a plugin skipped without the promise",
        "no promise at all",
        "it skipped, without a promise",
        "its scores are kept, its filter is not",
        "its scores of this pod are not kept",
        "there was one node, so PreScore did not run",
        "no plugins",
    ],
)
def test_what_may_be_taken_over(
    plugins: list[_Plugin], prepared: PreparedCycle, *, filtered: bool, scored: bool
) -> None:
    repeats = ClassRepeats(plugins, plugins)
    for _ in range(2):
        assert repeats.filtered(prepared) is filtered
        assert repeats.scored(prepared) is scored
