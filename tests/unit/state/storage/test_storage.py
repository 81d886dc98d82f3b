"""Storage objects by kind, and the look-ups between them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from stowage.api.objects.volume import (
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    StorageObject,
)
from stowage.state import InvariantViolation
from stowage.state.cluster_state import ClusterState
from stowage.state.storage.assume_cache import AssumeCache, Assumption
from stowage.state.storage.objects import Storage
from stowage.state.storage.validation import storage_validation_steps
from tests.support.volume_builders import make_capacity, make_claim, make_class, make_volume

OBJECTS: tuple[StorageObject, ...] = (
    make_class("fast"),
    make_volume("v", version="3"),
    make_claim("c", version="3"),
    make_capacity("s", "1Gi", None),
)


@pytest.mark.parametrize("obj", OBJECTS, ids=lambda each: type(each).__name__)
def test_an_object_that_is_known_already_is_no_news(obj: StorageObject) -> None:
    storage = Storage()
    assert storage.put(obj) == (None, True)
    assert storage.put(obj) == (obj, False)
    assert storage.drop(type(obj), obj.metadata.namespaced_name) is obj
    assert storage.drop(type(obj), obj.metadata.namespaced_name) is None


def test_objects_are_returned_as_the_api_server_showed_them() -> None:
    storage = Storage()
    for obj in OBJECTS:
        storage.put(obj)
    storage.assume([make_volume("v", version="3", given_to="c")], [], "u1")
    for kind, name, obj in (
        (StorageClass, "fast", OBJECTS[0]),
        (PersistentVolume, "v", OBJECTS[1]),
        (PersistentVolumeClaim, "default/c", OBJECTS[2]),
    ):
        assert storage.get_api_object(kind, name) is obj
        assert storage.get_api_object(kind, "gone") is None


def test_the_volumes_of_a_claim_are_those_given_to_it_and_the_free_ones_of_its_class() -> None:
    storage = Storage()
    for name, claim, class_name in (
        ("given", "c", "waits"),
        ("free", "", "waits"),
        ("given elsewhere", "d", "waits"),
        ("given in another class", "c", "other"),
        ("free in another class", "", "other"),
    ):
        storage.put(make_volume(name, class_name, given_to=claim))
    found = storage.volumes_for(make_claim("c"), capacity_nano=0)
    assert [volume.metadata.name for volume in found] == ["given", "free"]


def test_the_volumes_of_a_claim_have_the_capacity_that_is_asked_for() -> None:
    storage = Storage()
    for name, capacity, claim in (("a", "1", ""), ("b", "2", ""), ("c", "1", "c"), ("d", 2, "c")):
        volume = make_volume(name, "waits", given_to=claim)
        spec = replace(volume.spec, capacity={"storage": capacity})
        storage.put(replace(volume, spec=spec))
    found = storage.volumes_for(make_claim("c"), capacity_nano=2 * 10**9)
    assert [volume.metadata.name for volume in found] == ["d", "b"]
    storage.drop(PersistentVolume, "b")
    assert storage.volumes_for(make_claim("e"), capacity_nano=2 * 10**9) == []
    assert len(storage.volumes_for(make_claim("e"), capacity_nano=0)) == 1


def test_claims_are_found_by_their_class_and_by_their_volume() -> None:
    storage = Storage()
    storage.put(make_claim("c", "waits", volume="v"))
    storage.put(make_claim("d", "other"))
    assert storage.claims_of_class("waits") == ("default/c",)
    assert storage.claims_of_volume("v") == ("default/c",)
    storage.put(make_claim("c", "other", volume="w"))
    assert storage.claims_of_class("waits") == storage.claims_of_volume("v") == ()
    assert set(storage.claims_of_class("other")) == {"default/c", "default/d"}


class _OpenVolumes(AssumeCache[PersistentVolume]):
    def assume_unknown(self) -> None:
        self._assumed["gone"] = Assumption(make_volume("gone"), "uid-p0")


def test_validation_finds_an_assumption_about_what_is_gone() -> None:
    state = ClusterState()
    list(storage_validation_steps(state))
    state.storage.volumes = volumes = _OpenVolumes(lambda _old, _new: None)
    volumes.assume_unknown()
    with pytest.raises(InvariantViolation, match=r"^assumptions about .*: expected \[\], found"):
        list(storage_validation_steps(state))
