"""The ledger of claims sees a device that is in two claims at once."""

from __future__ import annotations

from collections import Counter

from stowage_benchmarks.chaos.claim_ledger import ClaimLedger
from stowage_benchmarks.chaos.history import ClaimChange, own_devices


def _change(name: str, *devices: str, change: str = "MODIFIED", pod: str = "p") -> ClaimChange:
    return ClaimChange(0.0, change, "replica-a", f"uid-{name}", name, devices, (pod,))


def _taken(*lines: ClaimChange) -> tuple[list[str], Counter[str]]:
    ledger, counts, violations = ClaimLedger(), Counter[str](), list[str]()
    for line in lines:
        ledger.take(line, counts, violations)
    return violations, counts


def test_a_device_in_two_claims_at_once_is_a_violation() -> None:
    violations, _ = _taken(_change("a", "d/p/0"), _change("b", "d/p/0", "d/p/1"))
    assert violations == ["device d/p/0 is in claim b and in a"]


def test_a_device_may_be_given_again_after_it_was_freed() -> None:
    violations, counts = _taken(
        _change("a", "d/p/0"),
        _change("a"),
        _change("b", "d/p/0"),
        _change("b", "d/p/0", change="DELETED"),
        _change("c", "d/p/0"),
    )
    assert violations == []
    assert counts == {"claims made": 3, "claims allocated": 3, "claims deallocated": 2}


def test_a_claim_that_changes_otherwise_keeps_its_device() -> None:
    violations, counts = _taken(_change("a", "d/p/0"), _change("a", "d/p/0", pod="q"))
    assert violations == []
    assert counts["claims allocated"] == 1


def test_a_claim_serves_the_pods_that_it_is_reserved_for() -> None:
    ledger = ClaimLedger()
    ledger.take(_change("a", "d/p/0"), Counter(), [])
    ledger.take(_change("b", pod="q"), Counter(), [])
    assert [ledger.serves(pod) for pod in "pqr"] == [True, False, False]


def test_shares_and_admin_access_may_be_in_several_claims() -> None:
    device = {"driver": "d", "pool": "p", "device": "0"}
    results = [device, {**device, "shareID": "s"}, {**device, "adminAccess": True}]
    assert list(own_devices({"allocation": {"devices": {"results": results}}})) == ["d/p/0"]
    assert list(own_devices({})) == []
