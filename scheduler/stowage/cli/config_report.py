"""What is wrong with a configuration file, and which of its settings have no effect."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import yaml
from rich.markup import escape

from stowage.api.config.feature_gates import FLAG, parse_feature_gates
from stowage.api.config.loading import (
    InvalidConfiguration,
    KubeSchedulerConfiguration,
    PluginSet,
    configuration_hash,
    load_configuration,
    settings_without_effect,
)
from stowage.api.config.policy import is_policy
from stowage.api.config.removed_names import known_plugin_hint
from stowage.api.decoding.bounded_yaml import Document
from stowage.api.decoding.document_lines import line_of
from stowage.cli.config_file import (
    STANDARD_INPUT,
    parse_document,
    print_errors,
    read_text,
)
from stowage.cli.effective import effective_builtins, write_new_file
from stowage.cli.plugin_discovery import discover_plugins
from stowage.cli.policy_file import policy_builtins
from stowage.cli.profile_settings import profile_settings_without_effect
from stowage.cli.profiles import make_frameworks, with_plugin_errors
from stowage.cli.terminal import terminal
from stowage.framework import Registry
from stowage.framework.profile.profile import ALL

_ARGUMENT = "FILE"
_NO_DOCUMENT = Document(None, yaml.MappingNode("", []))


class Accepted(NamedTuple):
    """A valid configuration.

    Attributes:
        decoded: The configuration with all defaults.
        effective: It with every plugin, weight and argument.
    """

    decoded: KubeSchedulerConfiguration
    effective: dict[str, Any]


class ConfigReport:
    """Prints reports about configuration files: errors to stderr, each with its line.

    Args:
        feature_gates: Values of ``--feature-gates``.

    Raises:
        InvalidConfiguration: The feature gates are invalid.
    """

    def __init__(self, feature_gates: Sequence[str] = ()) -> None:
        self._errors = terminal(stderr=True, soft_wrap=True)
        gates = parse_feature_gates(feature_gates)
        self._registry = discover_plugins(gates=gates)
        for text in gates.without_effect():
            self._errors.print(f"{FLAG}: [yellow]without effect:[/yellow] {escape(text)}")
        for plugin, fault in self._registry.faults.items():
            self._errors.print(f"[yellow]plugin {plugin} not loaded:[/yellow] {escape(fault)}")

    def describe(self, file: Path) -> bool:
        """Report on a file; returns whether it is valid."""
        accepted = self.accepted(file)
        if accepted is None:
            return False
        names = ", ".join(profile.scheduler_name for profile in accepted.decoded.profiles)
        text = f"{_name(file)} (profiles: {names}; hash {configuration_hash(accepted.effective)})"
        terminal(soft_wrap=True).print(f"[green]ok:[/green] {escape(text)}")
        return True

    def accepted(self, file: Path | None) -> Accepted | None:
        """The configuration of a file, or the default; None, with all errors printed."""
        if file is None:
            return self._judge(_NO_DOCUMENT, lambda _path: "the defaults")
        document = self._document(file)
        return None if document is None else self._judge(document, _places(file, document))

    def converted(self, file: Path) -> dict[str, Any] | None:
        """The configuration that is equal to a Policy; None, with all errors printed."""
        document = self._document(file)
        if document is None:
            return None
        try:
            return policy_builtins(document.builtins)
        except InvalidConfiguration as invalid:
            print_errors(self._errors, _in_order(invalid, document.root), _places(file, document))
            return None

    def is_written(self, file: Path, builtins: Mapping[str, Any]) -> bool:
        """Write a configuration to a new file; returns whether it was possible."""
        try:
            write_new_file("--output", file, builtins)
        except InvalidConfiguration as invalid:
            print_errors(self._errors, invalid)
            return False
        return True

    def _document(self, file: Path) -> Document | None:
        try:
            return parse_document(read_text(file, _ARGUMENT), _ARGUMENT, _name(file))
        except InvalidConfiguration as invalid:
            for error in invalid.errors:
                self._errors.print(escape(f"{_name(file)}: expected {error.expectation}"))
            return None

    def _judge(self, document: Document, place: Callable[[str], str]) -> Accepted | None:
        try:
            builtins = document.builtins
            if is_policy(builtins):
                builtins = policy_builtins(builtins)
            decoded = with_plugin_errors(
                lambda: load_configuration(builtins), lambda: self._registry
            )
            frameworks = make_frameworks(decoded, self._registry)
        except InvalidConfiguration as invalid:
            print_errors(self._errors, _in_order(invalid, document.root), place)
            return None
        for text in (
            *settings_without_effect(decoded, builtins),
            *profile_settings_without_effect(decoded, frameworks, builtins),
            *unknown_disabled_plugins(decoded, self._registry),
        ):
            where = escape(place(text.partition(":")[0]))
            self._errors.print(f"{where}: [yellow]without effect:[/yellow] {escape(text)}")
        return Accepted(decoded, effective_builtins(decoded, frameworks, self._registry))


def _places(file: Path, document: Document) -> Callable[[str], str]:
    return lambda path: f"{_name(file)}:{line_of(document.root, path)}"


def _in_order(invalid: InvalidConfiguration, root: yaml.Node) -> InvalidConfiguration:
    return InvalidConfiguration(sorted(invalid.errors, key=lambda each: line_of(root, each.path)))


def unknown_disabled_plugins(
    configuration: KubeSchedulerConfiguration, registry: Registry
) -> Iterator[str]:
    """Entries under ``disabled`` that name no plugin: kube-scheduler accepts them, too."""
    for index, profile in enumerate(configuration.profiles):
        for field in msgspec.structs.fields(profile.plugins):
            plugins: PluginSet = getattr(profile.plugins, field.name)
            path = f"profiles[{index}].plugins.{field.encode_name}.disabled"
            for place, setting in enumerate(plugins.disabled):
                if setting.name != ALL and setting.name not in registry:
                    hint = known_plugin_hint(setting.name, registry)
                    yield f"{path}[{place}].name: no plugin is called {setting.name}{hint}"


def _name(file: Path) -> str:
    return "standard input" if file == STANDARD_INPUT else str(file)
