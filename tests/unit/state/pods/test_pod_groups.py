"""Members of pod groups: pending, assumed and assigned, and groups of two sources."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from stowage.api.objects.pod_groups import CORE_GROUPS, COSCHEDULING_GROUPS
from stowage.state import ClusterCache, PodInfo
from stowage.state.cache import InvariantViolation
from stowage.state.pods.pod_groups import KnownGroup
from stowage.state.pods.pod_info import make_pod_info
from tests.stories.gang_driver import make_group, make_member

KEY = "default/g"


def _member(cache: ClusterCache, name: str, node: str = "", group: str = "g") -> PodInfo:
    return make_pod_info(make_member(name, group, node=node), cache.classes)


def _places(cache: ClusterCache, key: str = KEY) -> tuple[list[str], list[str], list[str]]:
    members = cache.pod_groups.members(key)
    return (
        [uid[4:] for uid in members.unscheduled],
        [uid[4:] for uid in members.assumed],
        [uid[4:] for uid in members.assigned],
    )


def test_a_member_is_in_one_place_from_its_arrival_to_its_end() -> None:
    cache = ClusterCache()
    pod = _member(cache, "p")
    cache.see_pending_member(pod)
    assert _places(cache) == (["p"], [], [])
    cache.assume_pod(pod, "n")
    assert _places(cache) == ([], ["p"], [])
    cache.validate()
    cache.forget_pod(pod.uid)
    assert _places(cache) == (["p"], [], [])
    cache.assume_pod(pod, "n")
    cache.update_pod(_member(cache, "p", node="n"))
    assert _places(cache) == ([], [], ["p"])
    cache.validate()
    cache.remove_pod(pod.uid)
    assert _places(cache) == ([], [], [])
    assert not cache.pod_groups.keys()


def test_a_pod_that_changes_its_group_leaves_the_old_one() -> None:
    cache = ClusterCache()
    cache.see_pending_member(_member(cache, "p"))
    cache.see_pending_member(_member(cache, "p", group="h"))
    assert (_places(cache), _places(cache, "default/h")) == (([], [], []), (["p"], [], []))
    cache.update_pod(_member(cache, "p", node="n", group="h"))
    cache.update_pod(_member(cache, "p", node="n"))
    assert (_places(cache), _places(cache, "default/h")) == (([], [], ["p"]), ([], [], []))
    cache.validate()


def test_a_pod_that_is_taken_out_comes_back_as_it_was() -> None:
    cache = ClusterCache()
    cache.update_pod(_member(cache, "bound", node="n"))
    assumed = cache.assume_pod(_member(cache, "assumed"), "n")
    for pod in (assumed, _member(cache, "bound", node="n")):
        before = _places(cache)
        cache.take_out(pod)
        assert not any(pod.name in place for place in _places(cache))
        cache.bring_back(pod)
        assert _places(cache) == before
        cache.validate()


def test_two_sources_may_have_a_group_of_one_name_and_the_core_one_counts() -> None:
    cache = ClusterCache()
    cache.update_pod_group(KnownGroup(make_group(min_count=2), COSCHEDULING_GROUPS, 30))
    cache.update_pod_group(KnownGroup(make_group(min_count=3)))
    known = cache.pod_groups.group(KEY)
    assert known is not None
    assert (known.source, known.group.min_count) == (CORE_GROUPS, 3)
    cache.remove_pod_group(KEY, CORE_GROUPS)
    known = cache.pod_groups.group(KEY)
    assert known is not None
    assert known.permit_timeout_s == 30
    assert cache.remove_pod_group(KEY, COSCHEDULING_GROUPS) is not None
    assert cache.pod_groups.group(KEY) is None
    assert cache.remove_pod_group(KEY, CORE_GROUPS) is None


def test_an_older_version_of_a_group_changes_nothing() -> None:
    cache = ClusterCache()
    newer, older = make_group(min_count=2), make_group(min_count=9)
    newer = replace(newer, metadata=replace(newer.metadata, resource_version="8"))
    older = replace(older, metadata=replace(older.metadata, resource_version="7"))
    cache.update_pod_group(KnownGroup(newer))
    assert cache.update_pod_group(KnownGroup(older)) == (KnownGroup(newer), False)


def test_validation_finds_a_member_that_is_not_on_a_node() -> None:
    cache = ClusterCache()
    cache.pod_groups.see_assigned(_member(cache, "ghost", node="n"))
    with pytest.raises(InvariantViolation, match="members of pod group default/g"):
        cache.validate()


@pytest.mark.parametrize("is_assumed", [True, False])
def test_validation_finds_a_member_in_two_places(*, is_assumed: bool) -> None:
    cache = ClusterCache()
    pod = _member(cache, "p", node="n")
    if is_assumed:
        cache.assume_pod(pod, "n")
    else:
        cache.update_pod(pod)
    cache.pod_groups.members(KEY).unscheduled[pod.uid] = None
    with pytest.raises(InvariantViolation, match="each pod in one place"):
        cache.validate()


def test_validation_finds_a_group_that_is_kept_without_members() -> None:
    cache = ClusterCache()
    pod = _member(cache, "p")
    cache.see_pending_member(pod)
    del cache.pod_groups.members(KEY).unscheduled[pod.uid]
    with pytest.raises(InvariantViolation, match="expected some member"):
        cache.validate()
