"""A pod that waits for claims names each unbound one, and what it waits for."""

from __future__ import annotations

import pytest

from stowage.analysis.explain_pod import explain_pod
from stowage.api.objects.meta import ObjectMeta
from stowage.api.objects.volume import PersistentVolumeClaim, StorageClass
from tests.support.builders import make_node, make_pod
from tests.support.clusters import loaded_cluster
from tests.support.volume_builders import WAITS, claim_volume, make_claim, make_volume

AT_ONCE = StorageClass(ObjectMeta(name="quick"), "csi.example.com", "Immediate")
SERVED_BY_NONE = (
    "its StorageClass quick binds at once, and neither csi.example.com nor a PersistentVolume has "
    "served it yet"
)
LATE = StorageClass(ObjectMeta(name="late"), "csi.example.com", WAITS)


def notes(*claims: PersistentVolumeClaim) -> list[str]:
    pod = make_pod("p", volumes=tuple(claim_volume(each.metadata.name) for each in claims))
    objects = (make_node("n"), AT_ONCE, LATE, make_volume("v", "late", given_to="bound"))
    explained = explain_pod(loaded_cluster(*objects, *claims, pod), "default/p")
    return [each for each in explained.notes if each.startswith("PersistentVolumeClaim")]


@pytest.mark.parametrize(
    ("class_name", "why"),
    [
        ("none", "its StorageClass none does not exist"),
        ("quick", SERVED_BY_NONE),
        ("", "it names no StorageClass, and no PersistentVolume has been bound to it"),
    ],
)
def test_an_unbound_claim_says_what_it_waits_for(class_name: str, why: str) -> None:
    assert notes(make_claim("c", class_name)) == [
        f"PersistentVolumeClaim default/c is not bound: {why}"
    ]


def test_bound_claims_are_not_named_and_others_say_that_they_wait_for_the_pod() -> None:
    claims = [make_claim("bound", "late", volume="v"), make_claim("l", "late")]
    assert notes(*claims) == []
    late, unknown = notes(*claims, make_claim("c", "none"))
    assert late.endswith("/l is not bound: its StorageClass late waits for the node of the pod")
    assert unknown.endswith("/c is not bound: its StorageClass none does not exist")
