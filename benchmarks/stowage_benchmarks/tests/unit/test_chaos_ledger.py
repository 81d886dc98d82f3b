"""The ledger finds violations in the history of a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from simcluster.harness.audit import ClusterState
from stowage_benchmarks.chaos.history import (
    HistoryReader,
    LeaseChange,
    NodeChange,
    PodChange,
    WriteArrived,
)
from stowage_benchmarks.chaos.ledger import Ledger
from stowage_benchmarks.chaos.plan import KILL_LEADER
from stowage_benchmarks.chaos.pods import WITH_VOLUME
from stowage_benchmarks.chaos.result import final_violations
from stowage_benchmarks.chaos.trouble import waited_in_turn_s

A, B = "replica-a", "replica-b"


@pytest.fixture
def ledger() -> Ledger:
    return Ledger("stowage", lease_s=4.0)


def change(uid: str, at: float = 0.0, *, by: str = "", cpu: int = 1000, **rest: Any) -> PodChange:
    kind = rest.pop("change", "MODIFIED")
    return PodChange(at, kind, by, uid, f"pod-{uid}", cpu, rest.pop("scheduler", "stowage"), **rest)


def bound(uid: str, at: float = 0.0, *, by: str = A, cpu: int = 1000) -> PodChange:
    return change(uid, at, by=by, cpu=cpu, node="n1")


def refused(uid: str, *, cpu: int = 1000, reason: str = "OutOfcpu") -> PodChange:
    return change(uid, cpu=cpu, node="n1", phase="Failed", reason=reason)


def test_a_pod_waits_until_it_is_bound_or_deleted(ledger: Ledger) -> None:
    ledger.take([change("1"), change("2"), change("3", scheduler="other")])
    assert set(ledger.waiting) == {"1", "2"}
    ledger.take([bound("1", 1.0), change("2", change="DELETED")])
    assert not ledger.waiting
    assert ledger.counts["pods bound"] == 1
    assert not ledger.violations


def test_a_pod_that_moves_is_a_violation(ledger: Ledger) -> None:
    ledger.take([bound("1"), change("1", by=A, node="n2")])
    assert ledger.violations == ["pod pod-1 was on n1 and is on n2"]


def test_a_refusal_by_the_kubelet_is_a_violation_when_stowage_alone_overcommitted_the_node(
    ledger: Ledger,
) -> None:
    ledger.take([bound("1", cpu=3000), bound("2", cpu=2000, by=B), refused("2", cpu=2000)])
    assert ledger.violations == ["pod pod-2 was refused by node n1: OutOfcpu"]


def test_a_refusal_by_the_kubelet_is_a_conflict_when_another_scheduler_bound_a_pod_to_the_node(
    ledger: Ledger,
) -> None:
    ledger.take([bound("1", cpu=3000, by=""), bound("2", cpu=2000), refused("2", cpu=2000)])
    assert not ledger.violations
    assert ledger.counts["conflicts with another scheduler (our pod refused)"] == 1


def test_a_refusal_for_another_reason_is_a_violation(ledger: Ledger) -> None:
    ledger.take([bound("1", by=""), bound("2"), refused("2", reason="NodeAffinity")])
    assert ledger.violations == ["pod pod-2 was refused by node n1: NodeAffinity"]


def test_finished_and_deleted_pods_release_their_cpu(ledger: Ledger) -> None:
    ledger.take([bound("1"), bound("2"), change("1", node="n1", phase="Succeeded")])
    assert ledger.cpu_used("n1") == 1000
    assert ledger.finished == {"1"}
    ledger.take([change("1", change="DELETED"), change("2", change="DELETED")])
    assert ledger.cpu_used("n1") == 0
    assert not ledger.finished


def write(
    at: float, by: str = A, resource: str = "pods/binding", passed_at: float = 0.0
) -> WriteArrived:
    return WriteArrived(at, by, "create", resource, "p", passed_at)


@pytest.mark.parametrize("resource", ["pods/binding", "pods/status", "events", "pods"])
def test_a_write_without_the_lease_is_a_violation(ledger: Ledger, resource: str) -> None:
    ledger.take([LeaseChange(0.0, A, "a1"), write(1.0, resource=resource)])
    assert not ledger.violations
    ledger.take([LeaseChange(6.0, B, "b1"), write(6.5, resource=resource)])
    (violation,) = ledger.violations
    assert violation.startswith(f"replica-a sent create {resource} p 6.50 s after it renewed")


def test_a_write_after_the_lease_expired_is_a_violation_even_without_a_new_leader(
    ledger: Ledger,
) -> None:
    ledger.take([LeaseChange(0.0, A, "a1"), write(4.0)])
    assert not ledger.violations
    ledger.take([write(4.1)])
    assert len(ledger.violations) == 1
    ledger.take([LeaseChange(9.0, A, "a1"), write(9.5)])
    assert len(ledger.violations) == 1


def test_a_write_by_a_replica_that_never_held_the_lease_is_a_violation(ledger: Ledger) -> None:
    ledger.take([LeaseChange(0.0, A, "a1"), write(1.0, B, "events")])
    assert ledger.violations == ["replica-b sent create events p and never held the lease"]


def test_a_write_that_was_sent_within_its_lease_may_be_late(ledger: Ledger) -> None:
    """The lease was released and taken by another replica before the binding arrived."""
    ledger.take([LeaseChange(0.0, A, "a1"), LeaseChange(1.0, A, ""), LeaseChange(1.1, B, "b1")])
    ledger.take([write(1.2)])
    assert not ledger.violations
    assert ledger.counts["writes that arrived while another replica led"] == 1


def test_a_write_is_judged_by_when_it_was_sent_not_by_how_long_the_server_let_it_wait(
    ledger: Ledger,
) -> None:
    ledger.take([LeaseChange(0.0, A, "a1"), LeaseChange(4.7, B, "b1")])
    ledger.take([write(4.78, passed_at=1.8)])
    assert not ledger.violations
    assert ledger.longest_wait_s == pytest.approx(2.98)
    ledger.take([write(4.9, passed_at=4.5)])
    (violation,) = ledger.violations
    assert violation == (
        "replica-a sent create pods/binding p 4.50 s after it renewed its lease of 4 s, "
        "handled 0.40 s later, while replica-b leads"
    )


def test_a_preempted_pod_is_counted_once(ledger: Ledger) -> None:
    ledger.take([bound("1"), change("1", by=A, node="n1", is_deleting=True)])
    ledger.take([change("1", by=A, node="n1", is_deleting=True), change("1", change="DELETED")])
    assert ledger.counts["pods preempted"] == 1


def test_recovery_ends_when_another_replica_has_bound_a_pod(ledger: Ledger) -> None:
    ledger.take([LeaseChange(0.0, A, "a1"), bound("1", 1.0)])
    ledger.disturbed(2.0, KILL_LEADER)
    # A binding of the killed leader was in flight.
    ledger.take([bound("2", 2.1), LeaseChange(6.0, B, "b1"), bound("3", 6.5, by=B)])
    (disturbance,) = ledger.disturbances
    assert disturbance.recovered_at == 6.5


@pytest.mark.parametrize(
    ("bound_at", "sentence"),
    [
        (6.9, ""),
        (7.1, f"no pod was bound for 5.10 s after: {KILL_LEADER}"),
        (None, f"no replica bound a pod after: {KILL_LEADER}"),
    ],
)
def test_a_leader_must_be_replaced_within_the_limit(
    ledger: Ledger, bound_at: float | None, sentence: str
) -> None:
    ledger.take([LeaseChange(0.0, A, "a1"), bound("1", 1.0)])
    ended = ledger.disturbed(2.0, KILL_LEADER, limit_s=5.0)
    if bound_at is not None:
        ledger.take([LeaseChange(6.0, B, "b1"), bound("2", bound_at, by=B)])
    assert ended.lateness == sentence
    assert list(final_violations(ledger, ClusterState([], []), ())) == [sentence] * bool(sentence)


def test_time_without_a_cpu_does_not_count_in_a_takeover(ledger: Ledger) -> None:
    ledger.take([LeaseChange(0.0, A, "a1"), bound("1", 1.0)])
    ended = ledger.disturbed(2.0, KILL_LEADER, limit_s=5.0)
    ledger.take([LeaseChange(6.0, B, "b1"), bound("2", 9.0, by=B)])
    ended.waited_s = 2.0
    assert ended.lateness == ""
    ended.waited_s = 1.5
    told = "no pod was bound for 7.00 s, 1.50 s of them without a CPU"
    assert ended.lateness == f"{told} after: {KILL_LEADER}"


def test_the_two_processes_that_waited_longest_for_a_cpu_count() -> None:
    before, after = {1: 10.0, 2: 20.0, 3: 30.0, 4: 9.0}, {1: 11.0, 2: 20.5, 3: 30.1, 5: 7.0}
    assert waited_in_turn_s(before, after) == pytest.approx(1.5)
    assert waited_in_turn_s(before, {}) == 0.0


def test_a_recovery_without_a_limit_is_never_late(ledger: Ledger) -> None:
    assert ledger.disturbed(2.0, KILL_LEADER).lateness == ""


def test_recreated_pods_and_pods_with_volumes_are_counted(ledger: Ledger) -> None:
    ledger.take([change("1"), change("1", change="DELETED")])
    ledger.take([msgspec.structs.replace(change("2"), name="pod-1")])
    ledger.take([msgspec.structs.replace(bound("3"), name=f"{WITH_VOLUME}3")])
    assert ledger.counts["pods made again under their names"] == 1
    assert ledger.counts["pods with volumes bound"] == 1


def test_the_ledger_follows_added_and_deleted_nodes(ledger: Ledger) -> None:
    ledger.take([NodeChange(0.0, "ADDED", "n1"), NodeChange(0.0, "ADDED", "n2")])
    ledger.take([NodeChange(1.0, "DELETED", "n1")])
    assert ledger.node_names == {"n2"}


def test_an_incomplete_line_is_read_when_it_is_complete(tmp_path: Path) -> None:
    file = tmp_path / "history"
    file.write_bytes(b'{"type":"node","at":1.0,"change":"ADDED","name":"n1"}\n{"type":"no')
    reader = HistoryReader(file)
    assert list(reader.new_lines()) == [NodeChange(1.0, "ADDED", "n1")]
    assert list(reader.new_lines()) == []
    with file.open("ab") as more:
        more.write(b'de","at":2.0,"change":"DELETED","name":"n1"}\n')
    assert list(reader.new_lines()) == [NodeChange(2.0, "DELETED", "n1")]
    reader.close()


def test_a_restored_pod_is_as_it_was_and_may_be_bound_again(ledger: Ledger) -> None:
    ledger.take([change("1"), change("2"), bound("1"), bound("2")])
    back: dict[str, Any] = {"is_restored": True}
    ledger.take([change("1", change="DELETED", **back), change("1", change="ADDED", **back)])
    assert set(ledger.waiting) == {"1"}
    ledger.take([change("1", 1.0, by=B, node="n2")])
    assert ledger.violations == []
    assert (ledger.counts["pods created"], ledger.counts["pods restored"]) == (2, 1)


def test_a_restored_pod_counts_on_its_node_as_ours(ledger: Ledger) -> None:
    ledger.take([change("1", cpu=3000), bound("1", cpu=3000)])
    back: dict[str, Any] = {"is_restored": True, "cpu": 3000, "node": "n1"}
    ledger.take([change("1", change="DELETED", **back), change("1", change="ADDED", **back)])
    assert ledger.cpu_used("n1") == 3000
    ledger.take([change("2", cpu=3000), bound("2", cpu=3000), refused("2", cpu=3000)])
    assert ledger.violations == ["pod pod-2 was refused by node n1: OutOfcpu"]


def test_a_pod_that_was_deleted_before_a_restore_is_to_be_deleted_again(ledger: Ledger) -> None:
    ledger.take([change("1"), change("1", change="DELETED")])
    ledger.take([change("1", change="ADDED", is_restored=True)])
    assert ledger.finished == {"1"}
