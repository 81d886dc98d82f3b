"""The plugins of examples/gpushare, without installing them."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from pathlib import Path

import msgspec

from stowage.analysis.loaded_cluster import stand_ins_for
from stowage.analysis.simulation.openb.policies import configuration_of
from stowage.analysis.simulation.openb.typical_pods import TypicalPod
from stowage.analysis.simulation.timeline import PolicyChanges
from stowage.api.config.loading import KubeSchedulerConfiguration, load_configuration
from stowage.api.events import Event
from stowage.cli.profiles import make_frameworks
from stowage.engine import Engine, make_engine
from stowage.framework import Registry, plugin_factory
from stowage.plugins import in_tree_registry

PACKAGE = Path(__file__).parents[2] / "examples" / "gpushare"


def gpushare_registry() -> Registry:
    """All plugins, those of the package by its entry points."""
    if str(PACKAGE) not in sys.path:
        sys.path.append(str(PACKAGE))
    declared = tomllib.loads((PACKAGE / "pyproject.toml").read_text("utf-8"))
    factories = []
    for name, target in declared["project"]["entry-points"]["stowage.plugins"].items():
        module, _, made_by = target.partition(":")
        factories.append(plugin_factory(getattr(import_module(module), made_by), name=name))
    return in_tree_registry().merged_with(*factories)


class Configured(msgspec.Struct, frozen=True):
    """A configuration with these plugins."""

    name: str
    configuration: KubeSchedulerConfiguration

    def make_engine(
        self,
        scheduler_names: Iterable[str],
        choose: Callable[[int], int],
        post: Callable[[Event], None],
    ) -> Engine:
        frameworks = make_frameworks(self.configuration, gpushare_registry())
        return make_engine([*frameworks, *stand_ins_for(scheduler_names, frameworks)], choose)

    def changes(self, scheduler_names: Iterable[str]) -> Sequence[PolicyChanges]:
        del scheduler_names
        return ()


class Published(msgspec.Struct, frozen=True):
    """A published policy with these plugins."""

    name: str

    @property
    def inputs(self) -> object:
        return self.name

    def for_run(self, typical: tuple[TypicalPod, ...], seed: int) -> Configured:
        configuration = load_configuration(configuration_of(self.name, typical, seed))
        return Configured(self.name, configuration)
