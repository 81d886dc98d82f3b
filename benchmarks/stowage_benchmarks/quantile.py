"""The quantiles that the reports show."""

from __future__ import annotations

from collections.abc import Sequence


def quantile(ascending: Sequence[float], share: float) -> float:
    """The value of sorted values that this share of them is below, rounded to one decimal."""
    return round(ascending[min(int(len(ascending) * share), len(ascending) - 1)], 1)
