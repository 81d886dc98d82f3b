"""Repeats the calls of a recording on an engine made as the recorded one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import msgspec

from stowage.analysis.explain_pod import NotInCluster, explain_pod
from stowage.analysis.explanation import PodExplanation
from stowage.analysis.followed_objects import FollowedObjects
from stowage.analysis.loaded_cluster import LoadedCluster
from stowage.api.events import (
    BindFailed,
    ClaimsWritten,
    Event,
    PendingPodGone,
    PendingPodSeen,
    VolumesWritten,
)
from stowage.api.instructions import AttemptResult, BindClaims, BindVolumes
from stowage.cli.ask.recorded_objects import up_to
from stowage.cli.replay.engines import make_recorded_engine
from stowage.cli.replay.report import Counts, ReplayReport
from stowage.engine import Replay, ReplayDiverged
from stowage.engine.journal import Entry, HandleCall, ScheduleCall
from stowage.recording.frames import UnreadableRecording
from stowage.recording.reader import Recording

_TAKEN_BACK = "taken back"


class Attempt(msgspec.Struct, frozen=True):
    """An attempt of a pod: the number of its call, and the result."""

    call: int
    result: AttemptResult


class Repetition:
    """An engine that lives through a recording again.

    Args:
        recording: The recording.

    Raises:
        InvalidConfiguration: Its configuration needs plugins that are not installed here.
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._followed = FollowedObjects()
        header = recording.header
        self._replay = Replay(partial(make_recorded_engine, header), header.unix_offset_s)
        self._counts = Counts()

    def run(self, ends_at: float | None) -> ReplayReport:
        """Repeat all calls, or those up to a time of the engine.

        Raises:
            ReplayDiverged: An instruction differs.
            UnreadableRecording: The recording is damaged.
        """
        for entry in calls_until(self._recording, ends_at):
            self._repeat(entry)
        return self._report()

    def explain(self, key: str, attempt: Attempt) -> PodExplanation:
        """Repeat the calls up to an attempt of a pod, and explain it.

        Raises:
            ReplayDiverged: An instruction differs.
            UnreadableRecording: The recording is damaged.
        """
        for number, entry in enumerate(self._recording.calls()):
            if number < attempt.call:
                self._repeat(entry)
            elif isinstance(entry, ScheduleCall):
                with self._time_named(entry):
                    self._replay.repeat_until_attempt(entry, key)
                return self._explanation(key, attempt.result, entry)
        raise NotInCluster(f"the recording ends before the attempt of pod {key}")

    def _explanation(self, key: str, result: AttemptResult, entry: ScheduleCall) -> PodExplanation:
        if result.node_name:
            self._take_back(key, result, entry)
            self._followed.place(key, result.node_name)
        cluster = LoadedCluster(self._followed.objects, self._replay.engine, {})
        header = self._recording.header
        basis = (
            f"as of {header.time_of_day(entry.now)}, attempt {result.attempts} ({result.result}), "
            f"repeated from a recording of Stowage {header.stowage}"
        )
        return msgspec.structs.replace(explain_pod(cluster, key), basis=basis)

    def _take_back(self, key: str, result: AttemptResult, entry: ScheduleCall) -> None:
        """Let the pod wait again, without the node, volumes and devices that the attempt took."""
        pod = self._followed.objects.pod(key)
        if pod is None:
            return
        events: list[Event] = []
        for each in entry.instructions:
            if isinstance(each, BindClaims) and each.pod == result.pod:
                events.append(ClaimsWritten(each.pod.uid, each.number, error=_TAKEN_BACK))
            elif isinstance(each, BindVolumes) and each.pod == result.pod:
                events.append(VolumesWritten(each.pod.uid, each.number, error=_TAKEN_BACK))
        events += [
            PendingPodGone(result.pod.namespace, result.pod.name, result.pod.uid),
            BindFailed(result.pod.uid, result.node_name, _TAKEN_BACK),
            PendingPodSeen(pod),
        ]
        self._replay.engine.handle(events, entry.now)

    def _repeat(self, entry: Entry) -> None:
        with self._time_named(entry):
            self._replay.repeat(entry)
        self._counts.add(entry)
        if isinstance(entry, HandleCall):
            for event in entry.events:
                self._followed.follow(event)

    @contextmanager
    def _time_named(self, entry: Entry) -> Iterator[None]:
        """Begin the message of a difference with the time of day, which --at takes."""
        try:
            yield
        except ReplayDiverged as difference:
            at = self._recording.header.time_of_day(entry.now)
            raise ReplayDiverged(f"{at}: {difference}") from difference

    def _report(self) -> ReplayReport:
        return ReplayReport.of(self._recording, self._counts, self._replay.engine)


def calls_until(recording: Recording, ends_at: float | None) -> Iterator[Entry]:
    """The calls up to a time of the engine; None for all.

    Raises:
        UnreadableRecording: There is none, because the recording was cut short.
    """
    entry: Entry | None = None
    for entry in recording.calls():
        if ends_at is not None and entry.now > ends_at:
            return
        yield entry
    if entry is None:
        raise UnreadableRecording("the recording ends before its first call")


def last_attempt(recording: Recording, key: str, ends_at: float | None) -> Attempt:
    """The last attempt of a pod (``namespace/name``) up to a time.

    Raises:
        NotInCluster: There is none.
    """
    found = None
    for number, entry in enumerate(calls_until(recording, ends_at)):
        for each in entry.instructions if isinstance(entry, ScheduleCall) else ():
            if isinstance(each, AttemptResult) and each.pod.key == key:
                found = Attempt(number, each)
    if found is None:
        raise NotInCluster(f"the recording has no attempt of pod {key}{up_to(recording, ends_at)}")
    return found
