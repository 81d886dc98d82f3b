"""Worst costs of calls, by function.

``checker/cost.go`` and ``ext`` of cel-go, ``library/cost.go`` of Kubernetes.
"""

from __future__ import annotations

from collections.abc import Mapping

from stowage.cel.estimation.called import CallCost, CalledOverload, Estimate
from stowage.cel.estimation.lists import LISTS
from stowage.cel.estimation.operators import OPERATORS
from stowage.cel.estimation.texts import TEXTS

_AUTHORIZATION_CHECK = CallCost(350_000)
_USUAL = CallCost(1)


def _check(_called: CalledOverload) -> CallCost:
    return _AUTHORIZATION_CHECK


_ESTIMATES: Mapping[str, Estimate] = {**OPERATORS, **TEXTS, **LISTS, "check": _check}


def call_cost(called: CalledOverload) -> CallCost:
    """The worst cost of a call of one overload, without its arguments: 1 for most functions."""
    estimate = _ESTIMATES.get(called.call.function)
    found = None if estimate is None else estimate(called)
    return _USUAL if found is None else found
