"""Lives through a recording with other configurations, and compares the lives."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from stowage.analysis.life_comparison import RECORDED, Life, LifeComparison, compare_lives
from stowage.analysis.recorded_life import RecordedLife
from stowage.analysis.relived_life import RelivedLife
from stowage.api.config.loading import load_configuration
from stowage.api.events import Event
from stowage.cli.ask.weights import parse_weights
from stowage.cli.config_file import read_configuration
from stowage.cli.replay.engines import OtherProfiles, make_deciding_engine
from stowage.cli.replay.repetition import calls_until
from stowage.recording.reader import Recording

REPLAYED = "replayed"
CHANGED = "changed"
_NOTES = (
    "in replayed lives, decisions, bindings and evictions take no time",
    "of equally good nodes, the first one wins; extenders accept every node",
    "controllers, users and kubelets do what they did in the recording",
)


class Changes(msgspec.Struct, frozen=True):
    """Another configuration.

    Attributes:
        config: Its file; None for the recorded configuration.
        weights: ``PLUGIN=WEIGHT``.
    """

    config: Path | None = None
    weights: Sequence[str] = ()

    def __bool__(self) -> bool:
        """Whether anything is changed."""
        return self.config is not None or bool(self.weights)


class Comparison:
    """Lives through a recording several times.

    Args:
        path: The recording.
        ends_at: Where to stop, in seconds of the engine's clock; None for its end.

    Raises:
        InvalidConfiguration: The recorded configuration needs plugins that are not installed here.
        UnreadableRecording: The recording is damaged.
    """

    def __init__(self, path: Path, ends_at: float | None) -> None:
        self._path = path
        self._ends_at = ends_at
        with Recording(path) as recording:
            self._header = recording.header
            self._profiles = OtherProfiles(load_configuration(self._header.configuration))
            engine = make_deciding_engine(self._header, self._profiles, lambda _event: None)
            self._recorded = RecordedLife(engine, self._header.time_of_day)
            for entry in calls_until(recording, ends_at):
                self._recorded.add(entry)

    def compare(self, changes: Changes) -> LifeComparison:
        """Compare what happened, what the recorded configuration decides, and what the other does.

        Without changes the recorded configuration is compared with what happened.

        Raises:
            InvalidConfiguration: The other configuration is invalid.
            UnreadableRecording: The recording is damaged.
        """
        weights = parse_weights(changes.weights)
        names = sorted(self._recorded.scheduler_names)
        base = msgspec.structs.replace(self._profiles, scheduler_names=names)
        lives = [self._what_happened(), self._live(REPLAYED, base, follows_configuration=True)]
        if changes:
            config = changes.config
            wanted = base.configuration if config is None else read_configuration(config)
            other = OtherProfiles(wanted, weights, names)
            lives.append(self._live(CHANGED, other, follows_configuration=False))
            base = other
        header, recorded = self._header, self._recorded
        started, ended = (header.time_of_day(each) for each in (recorded.started, recorded.ended))
        notes = [*_NOTES, *_stand_in_notes(base)]
        if header.checkpoint:
            notes.append(
                f"begins with the checkpoint of segment {header.segment}: the decisions before it "
                "are not known, so none is repeated and compared"
            )
        return compare_lives(lives, started, ended, notes)

    def _what_happened(self) -> Life:
        recorded = self._recorded
        num_preempted, ended = len(recorded.victims), recorded.ended
        return Life(RECORDED, recorded.stories, num_preempted, recorded.samples, ended)

    def _live(self, name: str, profiles: OtherProfiles, *, follows_configuration: bool) -> Life:
        posted: list[Event] = []
        engine = make_deciding_engine(self._header, profiles, posted.append)
        life = RelivedLife(
            engine, self._recorded, posted, follows_configuration=follows_configuration
        )
        with Recording(self._path) as recording:
            for entry in calls_until(recording, self._ends_at):
                life.add(entry)
        ended = self._recorded.ended
        return Life(name, life.stories, life.num_preempted, life.samples, ended)


def _stand_in_notes(profiles: OtherProfiles) -> list[str]:
    configured = [each.scheduler_name for each in profiles.configuration.profiles]
    return [
        f"no profile has the scheduler name {name}: the profile {configured[0]} answers"
        for name in profiles.scheduler_names
        if name not in configured
    ]
