"""A live configuration that records the events it posts and writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stowage.api.config.loading import ConfigError, InvalidConfiguration
from stowage.api.events import ConfigurationChanged, Event
from stowage.api.instructions import ConfigurationApplied, ConfigurationFailed
from stowage.operator.configuration.config_map import ConfigMapReference
from stowage.operator.configuration.live_configuration import (
    ConfigMapOptions,
    LiveConfiguration,
    LoadedConfiguration,
)
from stowage.operator.metrics.configuration_metrics import ConfigurationMetrics
from stowage.operator.writers.object_events import ObjectEventRecorder

REFERENCE = ConfigMapReference("stowage-system", "stowage-config")


def load(text: str) -> LoadedConfiguration:
    """Decode any text as a configuration whose hash is the text; "wrong" is invalid."""
    if text.startswith("wrong"):
        raise InvalidConfiguration([ConfigError("field", text, "something else")])
    return LoadedConfiguration(text, {"text": text}, {"text": text})


class Recorder(ObjectEventRecorder):
    """A live configuration that records the events it posts and writes."""

    def __init__(self) -> None:
        self.posted: list[Event] = []
        self.selected: list[Sequence[str]] = []
        self.recorded: list[tuple[str, str, str]] = []
        self.about: set[str] = set()
        self.live = LiveConfiguration(load("old"), self.posted.append, self.selected.append)
        self.live.follow(ConfigMapOptions(REFERENCE, load), self)
        self._version = 0

    def record(self, uid: str, *, reason: str, note: str, is_warning: bool = False) -> None:
        self.about.add(uid)
        self.recorded.append(("Warning" if is_warning else "Normal", reason, note))

    def edit(self, text: str, event_type: str | None = "MODIFIED") -> None:
        self._version += 1
        self.seen(text, str(self._version), event_type)

    def seen(self, text: str, version: str, event_type: str | None = "MODIFIED") -> None:
        metadata = {"uid": "u", "resourceVersion": version}
        self.live.handle_event(event_type, {"metadata": metadata, "data": {"config.yaml": text}})

    def apply(self) -> None:
        """Let the engine apply the posted configurations."""
        for _ in self.handle_in_engine(len(self.posted)):
            pass

    def handle_in_engine(self, number: int, failing: frozenset[int] = frozenset()) -> Iterator[str]:
        """Let the engine handle the oldest posted configurations, and fail to apply some of them.

        Yields:
            The hash of each applied configuration.
        """
        for place, event in enumerate(self.posted[:number]):
            assert isinstance(event, ConfigurationChanged)
            if place in failing:
                self.live.handle_failed(ConfigurationFailed(event.hash, "a plugin raised"))
            else:
                self.live.handle_applied(ConfigurationApplied(event.hash, ("stowage",)))
                yield event.hash
        del self.posted[:number]

    def metrics(self) -> dict[tuple[str, ...], float]:
        families = ConfigurationMetrics(self.live).collect()
        return {
            (sample.name, *sample.labels.values()): sample.value
            for family in families
            for sample in family.samples
        }
