"""The spec of a Lease that a replica acquires or renews."""

from __future__ import annotations

from stowage.operator.lease import LeaderElectionOptions, held_spec

OPTIONS = LeaderElectionOptions(identity="me", lease_duration_s=15.0)
HELD = {
    "holderIdentity": "me",
    "leaseDurationSeconds": 15,
    "acquireTime": "then",
    "renewTime": "then",
    "leaseTransitions": 3,
}


def test_a_new_lease_begins_without_a_transition() -> None:
    assert held_spec({}, OPTIONS, "now") == HELD | {
        "acquireTime": "now",
        "renewTime": "now",
        "leaseTransitions": 0,
    }


def test_a_renewal_changes_nothing_but_the_time_of_the_renewal() -> None:
    assert held_spec({**HELD, "strategy": "x"}, OPTIONS, "now") == {
        **HELD,
        "renewTime": "now",
        "strategy": "x",
    }


def test_a_lease_of_another_replica_is_acquired_now_and_counts_a_transition() -> None:
    spec = held_spec({**HELD, "holderIdentity": "other"}, OPTIONS, "now")
    assert (spec["acquireTime"], spec["leaseTransitions"]) == ("now", 4)


def test_a_renewal_adds_the_time_of_acquisition_and_the_transitions_if_they_were_lost() -> None:
    spec = held_spec({"holderIdentity": "me"}, OPTIONS, "now")
    assert (spec["acquireTime"], spec["leaseTransitions"]) == ("now", 0)
