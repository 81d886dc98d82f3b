"""The configuration in force, and how a new version of the ConfigMap replaces it.

::

    ConfigMap --text--> load --valid--> ConfigurationChanged -> inbox -> engine
                         |                                                 |
                         +-----refused: the old one stays in force         v
    log, metrics, Event, /readyz?verbose <-- ConfigurationApplied or ConfigurationFailed

A version is in force when the engine has applied it. A refused version, and one that the engine
cannot apply, changes nothing and is reported until a valid version replaces it. A running scheduler
loads versions in a thread, one after the other, so a long text does not block the event loop.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec
import structlog

from stowage.api.config.loading import ConfigError, InvalidConfiguration
from stowage.api.events import ConfigurationChanged, Event
from stowage.api.instructions import ConfigurationApplied, ConfigurationFailed
from stowage.operator.client.resource_version import parse_resource_version
from stowage.operator.configuration.config_map import ConfigMapReference, text_of
from stowage.operator.configuration.reading import Read, read_at_once
from stowage.operator.writers.object_events import ObjectEventRecorder

log = structlog.get_logger("stowage.operator.configuration.live_configuration")


class LoadedConfiguration(msgspec.Struct, frozen=True):
    """A valid configuration.

    Attributes:
        hash: Hash of the effective configuration; identifies it in logs and metrics.
        shown: The effective configuration in the format of its file, for /configz.
        engine_part: The same without what the engine does not need, such as certificates.
    """

    hash: str = ""
    shown: Mapping[str, Any] = msgspec.field(default_factory=dict)
    engine_part: dict[str, Any] = msgspec.field(default_factory=dict)


#: Loads a configuration from its text; raises InvalidConfiguration.
Load: TypeAlias = Callable[[str], LoadedConfiguration]


class ConfigMapOptions(msgspec.Struct, frozen=True):
    """The ConfigMap to follow, and the function that loads its text."""

    reference: ConfigMapReference
    load: Load


class Refusal(msgspec.Struct, frozen=True):
    """A refused version of the ConfigMap."""

    resource_version: str
    errors: Sequence[ConfigError]


class LiveConfiguration:
    """Handles versions of the ConfigMap and knows the configuration in force.

    Args:
        start: The configuration that the engine was made from.
        post: Puts an event into the inbox.
        select: Called with the scheduler names of each configuration that comes into force.

    Attributes:
        active: The configuration in force.
        refusal: The ConfigMap's latest version, if it was refused.
        num_applied: Number of configurations that came into force since the start.
        num_refused: Number of refused versions.
    """

    def __init__(
        self,
        start: LoadedConfiguration,
        post: Callable[[Event], None],
        select: Callable[[Sequence[str]], None],
    ) -> None:
        self.active = start
        self.refusal: Refusal | None = None
        self.num_applied = 0
        self.num_refused = 0
        self._post = post
        self._select = select
        self._options: ConfigMapOptions | None = None
        self._events: ObjectEventRecorder | None = None
        self._read: Read = read_at_once
        self._pending: deque[LoadedConfiguration] = deque()
        self._uid = ""
        self._latest = start.hash
        self._last_version: str | None = None
        self._newest = 0

    def follow(
        self, options: ConfigMapOptions, events: ObjectEventRecorder, read: Read = read_at_once
    ) -> None:
        """Handle versions of this ConfigMap from now on.

        Args:
            options: The ConfigMap, and how to load its text.
            events: Records Events about the versions.
            read: Runs the loading of a version and passes on the result, in the order of the calls.
        """
        self._options = options
        self._events = events
        self._read = read

    def handle_event(self, event_type: str | None, config_map: dict[str, Any]) -> None:
        """Handle a watch event, or (`event_type` None) an object of a list."""
        options = self._options
        if options is None:
            return
        metadata = config_map["metadata"]
        if event_type is not None and self._is_overtaken(metadata):
            return
        self._newest = parse_resource_version(metadata.get("resourceVersion", ""))
        self._uid = metadata["uid"]
        if event_type == "DELETED":
            self.handle_missing()
            return
        version = metadata.get("resourceVersion", "")
        if version == self._last_version:
            return
        self._last_version = version
        self._read(lambda: _load(options, config_map, version), self._take)

    def handle_missing(self) -> None:
        """Report that the ConfigMap does not exist; the configuration in force stays."""
        if self._options is None or self._last_version == "":
            return
        self._last_version = ""
        missing = ConfigError("--configmap", str(self._options.reference), "an existing ConfigMap")
        refusal = Refusal("", [missing])
        self._read(lambda: refusal, self._take)  # after the versions that are still being read

    def handle_applied(self, instruction: ConfigurationApplied) -> None:
        """Note that the engine has applied a configuration."""
        loaded = self._take_pending(instruction.hash)
        if loaded is None:
            return
        self.active = loaded
        self.num_applied += 1
        log.info(
            "configuration applied",
            configuration=instruction.hash,
            profiles=instruction.scheduler_names,
            dropped=instruction.dropped,
        )
        self._select(instruction.scheduler_names)
        self._record_event(
            is_warning=False, reason="ConfigurationApplied", note=_applied_note(instruction)
        )

    def handle_failed(self, instruction: ConfigurationFailed) -> None:
        """Note that the engine cannot apply a configuration."""
        if self._take_pending(instruction.hash) is None:
            return
        # A later edit may post the same configuration once more.
        self._latest = self._pending[-1].hash if self._pending else self.active.hash
        error = ConfigError("the configuration", instruction.text, "one that can be applied")
        refusal = Refusal(self._last_version or "", [error])
        # The refusal tells about the latest version; a later one may be on its way, or refused.
        if not self._pending and self.refusal is None:
            self.refusal = refusal
        self._report_refusal(refusal)

    def configz(self) -> dict[str, object]:
        """The content of /configz: the effective configuration and its hash.

        kube-scheduler registers its configuration under ``componentconfig``.
        """
        return {
            "componentconfig": self.active.shown,
            "stowage": {"configurationHash": self.active.hash},
        }

    def is_profiling_enabled(self) -> bool:
        """Whether the configuration in force enables profiling."""
        return bool(self.active.shown.get("enableProfiling"))

    def notes(self) -> list[str]:
        """Lines for ``/readyz?verbose``: the errors of a refused version."""
        if self.refusal is None:
            return []
        lines = [f"configuration refused, {self.active.hash} stays in force:"]
        return [*lines, *(f"  {error}" for error in self.refusal.errors)]

    def _is_overtaken(self, metadata: Mapping[str, Any]) -> bool:
        """Whether a watch event is older than the newest version, e.g. because it is repeated."""
        return 0 < parse_resource_version(metadata.get("resourceVersion", "")) < self._newest

    def _take(self, outcome: LoadedConfiguration | Refusal) -> None:
        if isinstance(outcome, Refusal):
            self._refuse(outcome)
        else:
            self._take_valid(outcome)

    def _take_valid(self, loaded: LoadedConfiguration) -> None:
        was_refused = self.refusal is not None
        self.refusal = None
        if loaded.hash != self._latest:
            self._latest = loaded.hash
            self._pending.append(loaded)
            self._post(ConfigurationChanged(loaded.hash, loaded.engine_part))
        elif was_refused:
            log.info("configuration valid again", configuration=loaded.hash)
            note = f"configuration {loaded.hash} is in force, as before"
            self._record_event(is_warning=False, reason="ConfigurationApplied", note=note)

    def _refuse(self, refusal: Refusal) -> None:
        self.refusal = refusal
        self._report_refusal(refusal)

    def _report_refusal(self, refusal: Refusal) -> None:
        self.num_refused += 1
        errors = [str(error) for error in refusal.errors]
        log.error(
            "configuration refused",
            configuration=self._latest,
            resource_version=refusal.resource_version,
            errors=errors,
        )
        note = f"{self._latest} stays in force; {'; '.join(errors)}"
        self._record_event(is_warning=True, reason="InvalidConfiguration", note=note)

    def _take_pending(self, answered: str) -> LoadedConfiguration | None:
        """Take the first posted configuration if the engine has answered it.

        The engine answers in the order in which they were posted.
        """
        if not self._pending or self._pending[0].hash != answered:
            return None
        return self._pending.popleft()

    def _record_event(self, *, is_warning: bool, reason: str, note: str) -> None:
        if self._events is not None:
            self._events.record(self._uid, is_warning=is_warning, reason=reason, note=note)


def _load(
    options: ConfigMapOptions, config_map: Mapping[str, Any], version: str
) -> LoadedConfiguration | Refusal:
    try:
        return options.load(text_of(config_map, options.reference))
    except InvalidConfiguration as invalid:
        return Refusal(version, invalid.errors)


def _applied_note(instruction: ConfigurationApplied) -> str:
    note = f"configuration {instruction.hash} is in force"
    dropped = ", ".join(f"{number} of {name}" for name, number in instruction.dropped.items())
    return f"{note}; pods left without a profile: {dropped}" if dropped else note
