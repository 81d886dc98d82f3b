"""What a metric is: its name, type, labels, help, stability and buckets."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import msgspec


class Stability(StrEnum):
    """Stability level of a metric, part of its HELP text."""

    STABLE = "STABLE"
    BETA = "BETA"
    ALPHA = "ALPHA"


class Kind(StrEnum):
    """Type of a metric."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Definition(msgspec.Struct, frozen=True):
    """A metric; a histogram has `buckets`, their upper bounds without ``+Inf``."""

    kind: Kind
    name: str
    help: str
    labels: tuple[str, ...] = ()
    stability: Stability = Stability.ALPHA
    buckets: Sequence[float] = ()

    @property
    def help_text(self) -> str:
        """The HELP text, in the format of component-base."""
        return f"[{self.stability}] {self.help}"
