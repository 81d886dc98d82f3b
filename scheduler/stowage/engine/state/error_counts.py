"""Counts of failed scheduling attempts, for metrics."""

from __future__ import annotations

from collections import Counter

from stowage.api.status import Code, Status
from stowage.framework import Framework


class ErrorCounts:
    """How often plugins failed.

    Attributes:
        by_plugin: Attempts that ended because a plugin raised or returned an Error, by plugin.
        by_volume_stage: Those of them that failed on volumes, by upstream's stage: predicate,
            assume, bind.
    """

    def __init__(self) -> None:
        self.by_plugin: Counter[str] = Counter()
        self.by_volume_stage: Counter[str] = Counter()

    def count(self, status: Status, framework: Framework, volume_stage: str) -> None:
        """Count a status if it is an Error; `volume_stage` applies to errors of volume plugins."""
        if status.code is not Code.ERROR:
            return
        if status.plugin:
            self.by_plugin[status.plugin] += 1
        if framework.binds_volumes(status.plugin):
            self.by_volume_stage[volume_stage] += 1
