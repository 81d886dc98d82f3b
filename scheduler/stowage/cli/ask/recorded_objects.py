"""The cluster of a recording as it was at some time (``--from RECORDING``)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import typer

from stowage.analysis.cluster_objects import ClusterObjects
from stowage.analysis.explain_pod import NotInCluster
from stowage.analysis.followed_objects import FollowedObjects
from stowage.api.config.feature_gates import FeatureGates
from stowage.api.config.loading import KubeSchedulerConfiguration, load_configuration
from stowage.api.events import AssignedPodSeen, ConfigurationChanged, PendingPodSeen
from stowage.api.instructions import AttemptResult
from stowage.cli.ask.flags import ClusterFlags
from stowage.cli.ask.object_names import pod_key
from stowage.engine.journal import Entry, HandleCall
from stowage.recording.frames import UnreadableRecording, is_recording
from stowage.recording.reader import Recording, find_recording


class RecordedObjects(msgspec.Struct, frozen=True):
    """The objects of a cluster at some time of a recording.

    Attributes:
        objects: The objects, as the watches had shown them.
        configuration: The configuration of the scheduler at that time.
        as_of: "the cluster as of" that time, as text.
        gates: The feature gates of the recorded scheduler.
        unix_s: That time, in seconds since 1970.
    """

    objects: ClusterObjects
    configuration: KubeSchedulerConfiguration
    as_of: str
    gates: FeatureGates
    unix_s: float


def read_recorded(flags: ClusterFlags) -> RecordedObjects | None:
    """The cluster of the recording that ``--from`` names; None if it names none.

    Raises:
        UnreadableRecording: The recording is damaged, or there is another ``--from`` beside it.
        NotInCluster: The recording does not have the pod of ``--until`` up to ``--at``.
        InvalidConfiguration: The recorded configuration needs plugins that are not installed here.
    """
    files = flags.files or ()
    named = [each for each in files if each.is_dir() or is_recording(each)]
    if not named:
        if flags.at is not None or flags.until is not None:
            raise typer.BadParameter("--at and --until need a recording: --from RECORDING")
        return None
    if len(files) > 1:
        raise UnreadableRecording(f"{named[0]}: expected no other --from beside a recording")
    path = find_recording(named[0])
    ends_at = engine_time(path, flags.at)
    num_calls = None
    if flags.until is not None:
        num_calls = _calls_before(path, pod_key(flags.until), ends_at)
    return _followed(path, num_calls, ends_at)


def engine_time(path: Path, at: datetime | None) -> float | None:
    """A time on the clock of the recorded calls; None for no time.

    Raises:
        UnreadableRecording: The recording begins later.
    """
    if at is None:
        return None
    with Recording(path) as recording:
        now = at.timestamp() - recording.header.unix_offset_s
        first = next(recording.calls(), None)
        if first is not None and first.now > now:
            begins = recording.header.time_of_day(first.now)
            raise UnreadableRecording(f"{path}: it begins at {begins}, expected a later --at")
        return now


def up_to(recording: Recording, ends_at: float | None) -> str:
    """The end of a sentence about the calls up to a time; empty for all calls."""
    return "" if ends_at is None else f" up to {recording.header.time_of_day(ends_at)}"


def _followed(path: Path, num_calls: int | None, ends_at: float | None) -> RecordedObjects:
    """The objects after a number of calls, or at a time; None for the end."""
    followed = FollowedObjects()
    with Recording(path) as recording:
        configuration: Mapping[str, Any] = recording.header.configuration
        now: float | None = None
        for number, entry in enumerate(recording.calls()):
            if number == num_calls or (ends_at is not None and entry.now > ends_at):
                break
            now = entry.now
            for event in entry.events if isinstance(entry, HandleCall) else ():
                followed.follow(event)
                if isinstance(event, ConfigurationChanged):
                    configuration = event.configuration
        if now is None:
            raise UnreadableRecording(f"{path}: expected a recording with calls: it has none")
        as_of = f"the cluster as of {recording.header.time_of_day(now)}, from a recording"
        gates = FeatureGates(recording.header.feature_gates)
        unix_s = recording.header.unix_offset_s + now
    return RecordedObjects(
        followed.objects, load_configuration(configuration), as_of, gates, unix_s
    )


class _LastAttempt:
    """Finds the call in which a pod was attempted last, or in which it was shown on its node."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._uid = ""
        self.attempted: int | None = None
        self.placed: int | None = None
        self.is_known = False

    def add(self, number: int, entry: Entry) -> None:
        """Read the next call."""
        for each in entry.instructions:
            if isinstance(each, AttemptResult) and each.pod.key == self._key:
                self.attempted = number
        for event in entry.events if isinstance(entry, HandleCall) else ():
            if not isinstance(event, PendingPodSeen | AssignedPodSeen):
                continue
            metadata = event.pod.metadata
            if metadata.namespaced_name != self._key:
                continue
            self.is_known = True
            if metadata.uid != self._uid:
                self._uid, self.placed = metadata.uid, None
            if isinstance(event, AssignedPodSeen) and self.placed is None:
                self.placed = number


def _calls_before(path: Path, key: str, ends_at: float | None) -> int | None:
    """Number of calls before the last attempt of a pod, or before it got its node.

    None if it has not been attempted and has no node.
    """
    last = _LastAttempt(key)
    with Recording(path) as recording:
        for number, entry in enumerate(recording.calls()):
            if ends_at is not None and entry.now > ends_at:
                break
            last.add(number, entry)
        if not last.is_known:
            raise NotInCluster(f"the recording has no pod {key}{up_to(recording, ends_at)}")
    return last.placed if last.attempted is None else last.attempted
