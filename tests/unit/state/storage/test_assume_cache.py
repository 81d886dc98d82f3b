"""An assumption about an object holds until the API server shows a newer version."""

from __future__ import annotations

import pytest

from stowage.api.objects.volume import PersistentVolume
from stowage.state.storage.assume_cache import AssumeCache, Assumption
from tests.support.volume_builders import make_volume

Change = tuple[PersistentVolume | None, PersistentVolume | None]


def _cache() -> tuple[AssumeCache[PersistentVolume], list[Change]]:
    changes: list[Change] = []
    return AssumeCache(lambda old, new: changes.append((old, new))), changes


def test_an_assumption_ends_with_the_next_version_or_when_it_is_restored() -> None:
    cache, changes = _cache()
    first, given = make_volume("d", version="1"), make_volume("d", version="1", given_to="c")
    assert cache.put(first) == (None, True)
    cache.assume(given, "u1")
    assert cache.get("d") is given
    assert cache.get_api_object("d") is first
    assert list(cache) == [given]
    cache.restore("d", "u2")
    assert cache.get("d") is given
    cache.restore("d", "u1")
    assert cache.get("d") is first
    cache.assume(given, "u1")
    second = make_volume("d", version="2", given_to="c")
    assert cache.put(second) == (first, True)
    assert list(cache.assumptions()) == []
    assert changes == [
        (None, first),
        (first, given),
        (given, first),
        (first, given),
        (given, second),
    ]


def test_the_same_version_again_changes_nothing() -> None:
    cache, changes = _cache()
    first = make_volume("d", version="2")
    cache.put(first)
    cache.assume(make_volume("d", version="2", given_to="c"), "u1")
    changes.clear()
    assert cache.put(make_volume("d", version="2")) == (first, False)
    assert cache.put(make_volume("d", version="1")) == (first, False)
    assert len(list(cache.assumptions())) == 1
    assert changes == []


def test_deletion_ends_an_assumption() -> None:
    cache, changes = _cache()
    first, given = make_volume("d", version="1"), make_volume("d", version="1", given_to="c")
    cache.put(first)
    cache.assume(given, "u1")
    assert cache.drop("d") is first
    assert cache.get("d") is None
    assert len(cache) == 0
    assert changes[-1] == (given, None)
    cache.restore("d", "u1")
    assert cache.drop("d") is None


def test_only_known_objects_of_the_current_version_can_be_assumed() -> None:
    cache, _ = _cache()
    with pytest.raises(ValueError, match="could not find PersistentVolume 'd'"):
        cache.assume(make_volume("d", version="1"), "u1")
    cache.put(make_volume("d", version="3"))
    with pytest.raises(ValueError, match=r"out of sync \(stored: 3, assume: 2\)"):
        cache.assume(make_volume("d", version="2"), "u1")


def test_what_is_written_cannot_be_given_up() -> None:
    cache, _ = _cache()
    first, given = make_volume("d", version="1"), make_volume("d", version="1", given_to="c")
    cache.put(first)
    cache.assume(given, "u1")
    cache.mark_written("d", "u2")
    assert cache.assumption("d") == Assumption(given, "u1")
    cache.mark_written("d", "u1")
    cache.restore("d", "u1")
    assert cache.get("d") is given
    assert cache.assumption("d") == Assumption(given, "")
