"""The ledger of gangs sees one that is bound in part, and knows which members have to wait."""

from __future__ import annotations

from itertools import islice
from typing import Any

from stowage_benchmarks.chaos.history import GroupChange, Line, PodChange
from stowage_benchmarks.chaos.ledger import Ledger
from stowage_benchmarks.chaos.pods import pod_lives


def _group(min_count: int, change: str = "ADDED") -> GroupChange:
    return GroupChange(0.0, change, "g", min_count)


def _member(uid: str, node: str = "", change: str = "MODIFIED", **rest: Any) -> PodChange:
    by = "replica-a" if node else ""
    return PodChange(0.0, change, by, uid, uid, 100, "stowage", node, group="g", **rest)


def _taken(*lines: Line) -> Ledger:
    ledger = Ledger("stowage", lease_s=4.0)
    ledger.take(lines)
    return ledger


def test_a_gang_that_is_bound_in_part_is_torn() -> None:
    ledger = _taken(_group(2), _member("a"), _member("b"), _member("a", "n1"))
    assert list(ledger.gangs.torn()) == ["gang g is left with 1 of at least 2 members"]
    ledger.take([_member("b", "n2")])
    assert list(ledger.gangs.torn()) == []
    assert ledger.counts["gangs bound"] == 1
    assert ledger.counts["members of gangs bound"] == 2


def test_a_gang_of_which_no_member_is_bound_is_not_torn() -> None:
    ledger = _taken(_group(2), _member("a"), _member("b"))
    assert list(ledger.gangs.torn()) == []
    assert ledger.gangs.held() == set()


def test_members_wait_while_companions_or_the_group_are_missing() -> None:
    ledger = _taken(_member("a"), _member("b"))
    assert ledger.gangs.held() == {"a", "b"}
    ledger.take([_group(3)])
    assert ledger.gangs.held() == {"a", "b"}
    ledger.take([_member("c")])
    assert ledger.gangs.held() == set()


def test_a_member_that_has_gone_counts_as_bound_and_may_hold_the_others() -> None:
    lines: list[Line] = [_group(2), _member("a"), _member("b"), _member("c"), _member("a", "n1")]
    ledger = _taken(*lines, _member("b", change="DELETED"))
    assert list(ledger.gangs.torn()) == []
    assert ledger.gangs.held() == set()
    ledger.take([_member("a", "n1", phase="Succeeded")])
    assert ledger.gangs.held() == {"c"}


def test_members_are_bound_after_a_restore_as_they_were_in_the_backup() -> None:
    ledger = _taken(_group(2), _member("a", "n1"), _member("b"), _member("b", "n2"))
    ledger.take(
        _member("b", "n2" * (change == "DELETED"), change, is_restored=True)
        for change in ("DELETED", "ADDED")
    )
    assert list(ledger.gangs.torn()) == ["gang g is left with 1 of at least 2 members"]
    ledger.take([_member("a", change="DELETED")])
    assert ledger.gangs.held() == {"b"}


def test_a_group_ends_with_its_last_member() -> None:
    ledger = _taken(_group(1), _member("a", "n1"))
    assert ledger.gangs.ended() == []
    ledger.take([_member("a", "n1", phase="Succeeded")])
    assert ledger.gangs.ended() == ["g"]
    ledger.take([_group(1, "DELETED")])
    assert ledger.gangs.by_name == {}


def test_gangs_leave_the_other_pods_of_a_seed_as_they_are() -> None:
    plain = [each.name for each in islice(pod_lives(1, "stowage"), 220)]
    lives = list(islice(pod_lives(1, "stowage", with_gangs=True), 200))
    groups = [each.group["metadata"]["name"] for each in lives if each.group is not None]
    members = [each.manifest["spec"].get("schedulingGroup") for each in lives]
    others = [each.name for each in lives if "schedulingGroup" not in each.manifest["spec"]]
    assert others == plain[: len(others)]
    assert groups == list(dict.fromkeys(each["podGroupName"] for each in members if each))
    assert len(groups) == 3
