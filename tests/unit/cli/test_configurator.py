"""A configuration that was loaded is ready when the engine asks for its settings."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from stowage.api.config.loading import KubeSchedulerConfiguration
from stowage.cli.config_file import parse_configuration
from stowage.cli.configurator import Configurator
from stowage.cli.effective import effective_builtins
from stowage.engine import EngineSettings
from stowage.framework import AdaptedPlugin, plugin_factory
from stowage.framework.authoring import NodeInfo, PodInfo
from stowage.operator.configuration.live_configuration import LoadedConfiguration
from stowage.plugins import in_tree_registry

_HEADER = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
_TEXT = (
    _HEADER
    + """podMaxBackoffSeconds: 30
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
)


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


class OpensInItsThread:
    """An out-of-tree plugin that only the thread that made it may call."""

    name = "OpensInItsThread"

    def __init__(self) -> None:
        self.thread = threading.current_thread()

    def filter_node(self, pod: PodInfo, node: NodeInfo) -> None:
        assert threading.current_thread() is self.thread


def test_an_out_of_tree_plugin_is_made_in_the_thread_of_the_engine() -> None:
    registry = in_tree_registry().merged_with(plugin_factory(OpensInItsThread))
    configurator = Configurator(registry, 300.0)
    plugins = "{multiPoint: {enabled: [{name: OpensInItsThread}]}}"
    text = f"{_HEADER}profiles: [{{plugins: {plugins}}}]\n"
    with ThreadPoolExecutor() as pool:
        loaded = pool.submit(configurator.reload, _parse(text), _parse, text).result()

    (framework,) = configurator.configure(loaded.engine_part).frameworks
    plugin = framework.profile.instances["OpensInItsThread"]
    assert isinstance(plugin, AdaptedPlugin)
    assert plugin.authored.thread is threading.current_thread()
