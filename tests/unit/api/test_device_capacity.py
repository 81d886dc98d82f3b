"""What requests consume of devices, by policy."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from stowage.api.objects.device import DeviceCapacity
from stowage.api.values.device_capacity import amount, capacity_rule, consumed_capacity

RANGE = {"validRange": {"min": "2Gi", "max": "8Gi", "step": "1Gi"}}
VALUES = {"validValues": ["1Gi", "4Gi"]}


def consumed(policy: dict[str, Any] | None, requested: str | None, taken: str = "0") -> str | None:
    """What a request consumes of 10Gi, of which some is consumed already."""
    given: dict[str, Any] = {"value": "10Gi"}
    if policy is not None:
        given["requestPolicy"] = policy
    rules = {"memory": capacity_rule(msgspec.convert(given, DeviceCapacity))}
    wanted = {} if requested is None else {"memory": amount(requested)}
    found = consumed_capacity(rules, wanted, {"memory": amount(taken).nano})
    return None if found is None else found["memory"].text


@pytest.mark.parametrize(
    ("policy", "requested", "text"),
    [
        (None, None, "10Gi"),
        (None, "3Gi", "3Gi"),
        (None, "11Gi", None),
        ({"default": "1Gi"}, None, "1Gi"),
        (RANGE, "1Gi", "2Gi"),
        (RANGE, "3Gi", str(3 * 2**30)),
        (RANGE, "2500Mi", str(3 * 2**30)),
        (RANGE, "9Gi", None),
        (RANGE, None, None),
        ({**RANGE, "default": "1Gi"}, None, "1Gi"),
        ({"validRange": {"min": "2Gi"}}, "3Gi", "3Gi"),
        (VALUES, "2Gi", "4Gi"),
        (VALUES, "1Gi", "1Gi"),
        (VALUES, "5Gi", None),
        ({**VALUES, "default": "2Gi"}, None, "2Gi"),
    ],
)
def test_a_request_consumes_by_policy(
    policy: dict[str, Any] | None, requested: str | None, text: str | None
) -> None:
    assert consumed(policy, requested) == text


def test_what_is_consumed_already_is_not_there() -> None:
    assert consumed(None, "3Gi", taken="7Gi") == "3Gi"
    assert consumed(None, "3Gi", taken="8Gi") is None


def test_a_device_without_a_requested_capacity_cannot_serve_the_request() -> None:
    assert consumed_capacity({}, {"memory": amount("1")}, {}) is None
    assert consumed_capacity({}, {}, {}) == {}
