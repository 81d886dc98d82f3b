"""A configuration that was loaded is ready when the engine asks for its settings."""

from __future__ import annotations

from typing import Any

from stowage.api.config.loading import KubeSchedulerConfiguration
from stowage.cli.config_file import parse_configuration
from stowage.cli.configurator import Configurator
from stowage.cli.effective import effective_builtins
from stowage.engine import EngineSettings
from stowage.operator.configuration.live_configuration import LoadedConfiguration
from stowage.plugins import in_tree_registry

_TEXT = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
podMaxBackoffSeconds: 30
percentageOfNodesToScore: 40
profiles:
- schedulerName: weighted
  plugins: {score: {disabled: [{name: ImageLocality}], enabled: [{name: NodeAffinity, weight: 7}]}}
  pluginConfig:
  - name: NodeResourcesFit
    args: {ignoredResources: [example.com/foo]}
- schedulerName: plain
extenders:
- urlPrefix: "https://localhost"
  managedResources: [{name: example.com/a, ignoredByScheduler: true}]
"""


def _parse(text: str) -> KubeSchedulerConfiguration:
    return parse_configuration(text, "--configmap", "the test")


def _loaded(configurator: Configurator) -> LoadedConfiguration:
    return configurator.reload(_parse(_TEXT), _parse, _TEXT)


def _shown(settings: EngineSettings) -> dict[str, Any]:
    return effective_builtins(_parse(_TEXT), settings.frameworks, in_tree_registry())


def test_the_settings_of_the_configuration_loaded_last_are_made_once() -> None:
    configurator = Configurator(in_tree_registry(), 300.0)
    loaded = _loaded(configurator)
    ((_, prepared),) = configurator.prepared

    assert configurator.configure(loaded.engine_part) is prepared
    assert configurator.configure(loaded.engine_part) is not prepared


def test_settings_made_in_advance_equal_those_of_a_replay() -> None:
    """A recording has the configuration only; its replay makes the settings from that."""
    configurator = Configurator(in_tree_registry(), 300.0)
    loaded = _loaded(configurator)
    in_advance = configurator.configure(loaded.engine_part)
    replayed = Configurator(in_tree_registry(), 300.0).configure(loaded.engine_part)

    assert _shown(in_advance) == _shown(replayed) == loaded.shown
    assert in_advance.queue_settings == replayed.queue_settings


def test_settings_of_an_older_configuration_are_made_anew() -> None:
    configurator = Configurator(in_tree_registry(), 300.0)
    older, _ = _loaded(configurator), _loaded(configurator)

    assert _shown(configurator.configure(older.engine_part)) == older.shown


def test_what_is_ready_stays_ready_while_an_older_configuration_comes_into_force() -> None:
    configurator = Configurator(in_tree_registry(), 300.0)
    older, newer = _loaded(configurator), _loaded(configurator)
    ((_, prepared),) = configurator.prepared

    assert configurator.configure(older.engine_part) is not prepared
    assert configurator.configure(newer.engine_part) is prepared
