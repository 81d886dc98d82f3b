"""Calls are equal after they were recorded, but for private annotations."""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest
from msgspec.structs import replace

from stowage.api.events import (
    ConfigurationChanged,
    CustomObjectSeen,
    Event,
    ExtendersAnswered,
    NodeSeen,
    PendingPodSeen,
    PreBindFinished,
    StorageSeen,
    VictimsReviewed,
    WorkloadSeen,
)
from stowage.api.instructions import (
    AttemptResult,
    BindByExtender,
    BindPod,
    PodReference,
    VictimsOnNode,
)
from stowage.api.objects.meta import ObjectMeta
from stowage.api.objects.volume import CSIStorageCapacity, PersistentVolume, StorageClass
from stowage.api.status import Code
from stowage.engine.journal import Entry, HandleCall, ScheduleCall
from stowage.recording.calls import DIGEST, CallEncoder, End, decode_calls
from tests.support.builders import label_selector, make_node, make_pod
from tests.support.filled_messages import KINDS, MARK, messages_of

POD = PodReference("default", "p", "uid-p")


def recorded(encoder: CallEncoder, *events: Event) -> tuple[Event, ...]:
    """Events after they were recorded and read."""
    (entry,) = decode_calls(encoder.encode([HandleCall(1.5, events, ())]))
    assert isinstance(entry, HandleCall)
    return entry.events


def annotated(pod_or_node: str, annotations: dict[str, str]) -> Event:
    meta = ObjectMeta(name="x", annotations=annotations)
    if pod_or_node == "node":
        return NodeSeen(replace(make_node("x"), metadata=meta))
    return PendingPodSeen(replace(make_pod("x"), metadata=meta))


def annotations_of(event: Event) -> dict[str, str]:
    assert isinstance(event, NodeSeen)
    return event.node.metadata.annotations


def test_calls_are_equal_after_they_were_recorded() -> None:
    events: tuple[Event, ...] = (
        PendingPodSeen(make_pod("p", cpu="100m", labels={"a": "b"})),
        NodeSeen(make_node("n", cpu="4")),
        WorkloadSeen("Service", "default", "s", label_selector({"a": "b"})),
        StorageSeen(PersistentVolume(ObjectMeta(name="v"))),
        StorageSeen(StorageClass(ObjectMeta(name="c"), provisioner="x")),
        StorageSeen(CSIStorageCapacity(ObjectMeta(name="c"), capacity=2**62)),
        PreBindFinished("uid-p", 2, Code.UNSCHEDULABLE, ("no",)),
        ExtendersAnswered("uid-p", 3, ("n",), {"m": "why"}, {}, {"n": 2**40}),
        VictimsReviewed("uid-p", 4, {"n": VictimsOnNode((POD,), 1)}),
        ConfigurationChanged("hash", {"profiles": [{"schedulerName": "a"}]}),
    )
    result = AttemptResult(POD, "scheduled", "stowage", 1, "n", duration_s=0.1)
    entries: list[Entry | End] = [
        HandleCall(0.1 + 0.2, events, (), (1e9 + 0.1, 2e9)),
        ScheduleCall(1e9 / 3, 4, (1, 0), (result,), (1e9,), (7,)),
        End("why"),
    ]
    assert list(decode_calls(CallEncoder().encode(entries))) == entries


def test_the_text_of_annotations_that_scheduling_does_not_read_is_not_recorded() -> None:
    read = {"volume.kubernetes.io/selected-node": "n"}
    for kind in ("pod", "node"):
        event = annotated(kind, {"token": "hunter2", **read})
        data = CallEncoder().encode([HandleCall(0.0, (event,), ())])
        assert b"hunter2" not in data
        assert b"token" not in data
    (event,) = recorded(CallEncoder(), annotated("node", read))
    assert annotations_of(event) == read


@pytest.mark.parametrize("kind", [each for each in KINDS if each not in (BindPod, BindByExtender)])
def test_no_event_and_no_instruction_is_recorded_with_private_annotations(
    kind: type[msgspec.Struct],
) -> None:
    """But for those that a Binding writes, which say what plugins reserved."""
    for message in messages_of(kind):
        is_event = isinstance(message, get_args(Event))
        entry = HandleCall(0.0, (message,), ()) if is_event else HandleCall(0.0, (), (message,))
        assert f"{MARK}-annotations".encode() not in CallEncoder().encode([entry])


def test_annotations_of_custom_objects_are_not_recorded() -> None:
    spec = {"spec": {"size": 3}}
    obj = {"metadata": {"name": "x", "annotations": {"token": "hunter2"}}, **spec}
    encoder = CallEncoder()
    (event,) = recorded(encoder, CustomObjectSeen("foos.v1.example.com", obj))
    assert isinstance(event, CustomObjectSeen)
    assert list(event.object["metadata"]["annotations"]) == [DIGEST]
    assert event.object["spec"] == spec["spec"]
    plain = CustomObjectSeen("foos.v1.example.com", {"metadata": {"name": "x"}})
    assert recorded(encoder, plain) == (plain,)


def test_a_change_of_an_annotation_stays_visible() -> None:
    encoder = CallEncoder()
    texts = ("one", "one", "two")
    events = recorded(encoder, *(annotated("node", {"a": text}) for text in texts))
    first, again, changed = (annotations_of(event)[DIGEST] for event in events)
    assert first == again != changed


def test_digests_of_two_recordings_cannot_be_compared() -> None:
    event = annotated("node", {"a": "one"})
    (one,), (other,) = recorded(CallEncoder(), event), recorded(CallEncoder(), event)
    assert annotations_of(one)[DIGEST] != annotations_of(other)[DIGEST]


def test_calls_of_versions_without_wall_times_are_read() -> None:
    data = msgspec.msgpack.encode([["handle", 1.5, [], []], ["schedule", 2.5, 4, [1], []]])
    assert list(decode_calls(data)) == [HandleCall(1.5, (), ()), ScheduleCall(2.5, 4, (1,), ())]
