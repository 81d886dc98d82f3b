"""A checkpoint and the events after it show the same objects as all events."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from stowage.analysis.followed_objects import FollowedObjects
from stowage.api.events import (
    AssignedPodGone,
    AssignedPodSeen,
    DeviceObjectGone,
    DeviceObjectSeen,
    Event,
    NodeGone,
    NodeSeen,
    PendingPodGone,
    PendingPodSeen,
    StorageGone,
    StorageSeen,
    WorkloadGone,
    WorkloadSeen,
)
from stowage.api.objects.meta import ObjectMeta
from stowage.api.objects.volume import StorageClass
from stowage.engine.journal import HandleCall
from stowage.recording.header import Header
from stowage.recording.limits import RecordingLimits
from stowage.recording.reader import Recording
from stowage.recording.segment_writer import SegmentWriter
from tests.support.builders import label_selector, make_node, make_pod
from tests.support.device_builders import make_claim

_NAMES = st.sampled_from("ab")
_NUMBERS = st.sampled_from("12")
_LIMITS = RecordingLimits(2**30, 1e9)


def _pod_seen(name: str, uid: str, node: str) -> Event:
    pod = make_pod(name, uid=uid, node=node)
    return AssignedPodSeen(pod) if node else PendingPodSeen(pod)


_EVENTS: st.SearchStrategy[Event] = st.one_of(
    st.builds(_pod_seen, _NAMES, _NUMBERS, st.sampled_from(("", "n"))),
    st.builds(lambda name, uid: PendingPodGone("default", name, uid), _NAMES, _NUMBERS),
    st.builds(lambda name, uid: AssignedPodGone("default", name, uid), _NAMES, _NUMBERS),
    st.builds(lambda name, cpu: NodeSeen(make_node(name, cpu=cpu)), _NAMES, _NUMBERS),
    st.builds(NodeGone, _NAMES),
    st.builds(
        lambda name, label: WorkloadSeen("Service", "default", name, label_selector({"a": label})),
        _NAMES,
        _NUMBERS,
    ),
    st.builds(lambda name: WorkloadGone("Service", "default", name), _NAMES),
    st.builds(lambda name: StorageSeen(StorageClass(ObjectMeta(name=name), "p")), _NAMES),
    st.builds(lambda name: StorageGone("StorageClass", "", name), _NAMES),
    st.builds(lambda name: DeviceObjectSeen(make_claim(name)), _NAMES),
    st.builds(lambda name: DeviceObjectGone("ResourceClaim", "default", name), _NAMES),
)


def followed(events: Iterable[Event]) -> dict[str, object]:
    """The objects after these events, by kind."""
    objects = FollowedObjects()
    for event in events:
        objects.follow(event)
    return {kind: found for kind, found in objects.objects.by_kind.items() if found}


def events_from(path: Path) -> list[Event]:
    """All events of a recording that begins with this segment."""
    with Recording(path) as recording:
        calls = [entry for entry in recording.calls() if isinstance(entry, HandleCall)]
    return [event for call in calls for event in call.events]


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.lists(_EVENTS, max_size=8), min_size=2, max_size=5),
    st.lists(_EVENTS, max_size=4),
)
def test_every_segment_shows_the_objects_of_all_before_it(
    parts: Sequence[Sequence[Event]], late: Sequence[Event]
) -> None:
    header = Header("0", 0.0, {}, "", 300.0)
    arriving = list(late)
    with TemporaryDirectory() as name:
        folder = Path(name)
        writer = SegmentWriter(folder, header, 0.0, _LIMITS, None)

        def write_late() -> None:
            if arriving:
                writer.write([HandleCall(0.0, (arriving.pop(),), ())])

        for number, part in enumerate(parts):
            if number:
                writer.begin_next(write_late)
            writer.write([HandleCall(float(number), tuple(part), ())])
        writer.end("enough")
        writer.close()
        first, *others = sorted(folder.iterdir())
        wanted = followed(events_from(first))
        assert len(others) == len(parts) - 1
        for path in others:
            assert followed(events_from(path)) == wanted
