"""The configuration in a file, and in the ConfigMap that a running scheduler follows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import yaml
from structlog.testing import capture_logs

from stowage.api.config.feature_gates import DEFAULT_FEATURE_GATES
from stowage.api.config.loading import (
    InvalidConfiguration,
    KubeSchedulerConfiguration,
    load_configuration,
    to_builtins,
)
from stowage.api.decoding.document_lines import line_of
from stowage.api.events import ConfigurationChanged
from stowage.api.instructions import ConfigurationApplied
from stowage.cli.config_file import parse_configuration, parse_document
from stowage.cli.configurator import Configurator
from stowage.cli.plugin_discovery import discover_plugins
from stowage.cli.profiles import make_frameworks, with_plugin_errors
from stowage.operator.configuration.config_map import ConfigMapReference
from stowage.operator.configuration.live_configuration import ConfigMapOptions, LiveConfiguration
from stowage.operator.writers.event_recorder import MAX_NOTE_BYTES, cut_note
from stowage.operator.writers.object_events import ObjectEventRecorder
from tests.fuzz.campaign import Finding
from tests.fuzz.mutations import MAX_BYTES, mutated_text, mutated_tree

ROOT = Path(__file__).parents[3]
MAX_ERROR = 2_000
"""Longest text of one error: it becomes a line of the log and of ``/readyz?verbose``."""
_REFERENCE = ConfigMapReference("stowage-system", "stowage-config")
_HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
_TOKENS = (
    *(b"&a ", b"*a", b"<<: *a\n", b"!!python/object/apply:os.system [ls]", b"!!binary ", b"!!set "),
    *(b"- ", b"? ", b": ", b"|\n", b">\n", b"---\n", b"...\n", b"%YAML 9.9\n", b"{", b"[", b"'"),
    *(b"\n", b"\t", b"null", b"~", b"yes", b"0x7fffffffffffffff", b"1e999", b".nan", b".inf"),
    *(b"2001-99-99", b"9" * 5000, b"1:60:60", b"-0", b"http://user:pw@host", b"\xef\xbb\xbf"),
)


@lru_cache(maxsize=1)
def _samples() -> tuple[Any, ...]:
    """The sample configurations, and one that has every field that the defaults have."""
    documents = [
        yaml.safe_load(path.read_text(encoding="utf-8"))
        for path in sorted((ROOT / "config").glob("*.yaml"))
    ]
    named = [each for each in documents if each.get("kind") == _HEAD["kind"]]
    return (*named, msgspec.json.decode(msgspec.json.encode(to_builtins(load_configuration()))))


@lru_cache(maxsize=1)
def _texts() -> tuple[str, ...]:
    return tuple(yaml.safe_dump(each, sort_keys=False) for each in _samples())


@lru_cache(maxsize=1)
def _names() -> tuple[str, ...]:
    """Names of fields and plugins."""
    found = {*msgspec.json.encode(_samples()).decode().split('"')}
    return tuple(sorted(each for each in found if each.isalnum()))


def odd_configuration(rng: Random) -> str:
    """The text of a configuration with some faults; one of ten has none."""
    kind = rng.random()
    if kind < 0.1:
        return rng.choice(_texts())
    if kind < 0.35:
        return mutated_text(rng, rng.choice(_texts()), _TOKENS, _texts())
    tree = rng.choice(_samples())
    if rng.random() < 0.5:
        # A part by itself: the shorter the document, the more inputs a second.
        name = rng.choice([each for each in tree if each not in _HEAD] or ["profiles"])
        tree = {**_HEAD, name: tree.get(name)}
    tree = mutated_tree(rng, tree, _names())
    text = json.dumps(tree) if rng.random() < 0.8 else yaml.safe_dump(tree, sort_keys=False)
    return text if len(text) <= MAX_BYTES else rng.choice(_texts())


def check_errors(invalid: InvalidConfiguration, text: str | None = None) -> None:
    """Check that each error is one line that names its field, and has a line in the document."""
    if not invalid.errors:
        raise Finding("refused without an error")
    root = None
    for error in invalid.errors:
        shown = str(error)
        if not error.path or not error.expectation:
            raise Finding(f"no field or no expectation: {shown!r}")
        if len(shown) > MAX_ERROR or not shown.isprintable():
            raise Finding(f"too long, or not one line: {shown!r:.300}")
        if text is not None and not error.path.startswith("--"):
            root = root or parse_document(text, "--config", "f.yaml").root
            if not 1 <= line_of(root, error.path) <= text.count("\n") + 2:
                raise Finding(f"no line of the document: {error.path}")


class ConfigurationTarget:
    """The text of ``--config``: it is refused with all errors, or written and read again."""

    name = "configuration"

    def __init__(self) -> None:
        self._registry = discover_plugins(gates=DEFAULT_FEATURE_GATES)

    def make(self, rng: Random) -> str:
        return odd_configuration(rng)

    def run(self, given: str) -> str:
        try:
            read = with_plugin_errors(
                lambda: parse_configuration(given, "--config", "f.yaml"), lambda: self._registry
            )
            make_frameworks(read, self._registry)
        except InvalidConfiguration as invalid:
            check_errors(invalid, given)
            return "rejected"
        _check_written(read)
        return "accepted"

    def close(self) -> None:
        """Nothing is held."""


def _check_written(read: KubeSchedulerConfiguration) -> None:
    """Check that the written form means the same."""
    written = msgspec.json.encode(to_builtins(read), enc_hook=str).decode()
    if parse_configuration(written, "--config", "written.yaml") != read:
        raise Finding(f"the written form means something else: {written}")


class _NotedEvents(ObjectEventRecorder):
    """Notes the Events about the ConfigMap instead of writing them."""

    def __init__(self) -> None:
        self.notes: list[tuple[str, str]] = []

    def record(self, uid: str, *, reason: str, note: str, is_warning: bool = False) -> None:
        self.notes.append((reason, note))


class ConfigMapTarget:
    """Versions of the ConfigMap: one that is invalid changes nothing and is reported."""

    name = "configmap"

    def __init__(self) -> None:
        self._configurator = Configurator(discover_plugins(gates=DEFAULT_FEATURE_GATES), 300.0)
        self._running = load_configuration()
        settings = self._configurator.settings(self._running)
        self._start = self._configurator.describe(self._running, settings)

    def make(self, rng: Random) -> tuple[str, ...]:
        """Keys and values of the ConfigMap's data, in turn."""
        data = [rng.choice(("config.yaml",) * 20 + ("", "config.yml")), odd_configuration(rng)]
        if rng.random() < 0.1:
            data += [rng.choice(("other", "config.yaml.bak")), "text"]
        return tuple(data)

    def run(self, given: tuple[str, ...]) -> str:
        posted: list[Any] = []
        events = _NotedEvents()
        live = LiveConfiguration(self._start, posted.append, _ignore)
        live.follow(ConfigMapOptions(_REFERENCE, self._load), events)
        data = dict(zip(given[::2], given[1::2], strict=False))
        metadata = {"name": "stowage-config", "uid": "u", "resourceVersion": "7"}
        with capture_logs() as lines:
            live.handle_event("MODIFIED", {"metadata": metadata, "data": data})
        if len(lines) > 1:
            raise Finding(f"more than one line of the log: {lines}")
        if live.active is not self._start:
            raise Finding("a version is in force before the engine has applied it")
        if live.refusal is not None:
            _check_refusal(live, events, posted)
            return "rejected"
        for event in posted:
            self._check_posted(event)
            with capture_logs():
                live.handle_applied(ConfigurationApplied(event.hash, ("stowage",)))
            if live.active.hash != event.hash:
                raise Finding("the applied version is not in force")
        return "accepted"

    def close(self) -> None:
        """Nothing is held."""

    def _load(self, text: str) -> Any:
        return self._configurator.reload(
            self._running, lambda each: parse_configuration(each, "--configmap", "cm"), text
        )

    def _check_posted(self, event: object) -> None:
        if not isinstance(event, ConfigurationChanged):
            raise Finding(f"not a configuration: {event!r}")
        self._configurator.configure(event.configuration)


def _ignore(_names: Sequence[str]) -> None:
    """The scheduler names in force are of no interest here."""


def _check_refusal(live: LiveConfiguration, events: _NotedEvents, posted: list[Any]) -> None:
    if live.refusal is None or posted:
        raise Finding("a refused version was posted")
    check_errors(InvalidConfiguration(live.refusal.errors))
    if [reason for reason, _ in events.notes] != ["InvalidConfiguration"]:
        raise Finding(f"expected one Event: {events.notes}")
    if len(cut_note(events.notes[0][1]).encode()) > MAX_NOTE_BYTES:
        raise Finding("the note of the Event is too long")
    if not all(line.isprintable() for line in live.notes()):
        raise Finding(f"the notes of /readyz are not one line each: {live.notes()}")
