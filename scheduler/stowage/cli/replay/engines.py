"""Makes the engines of replays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec

from stowage.analysis.changed_weights import with_weights
from stowage.analysis.loaded_cluster import stand_ins_for
from stowage.api.config.feature_gates import FeatureGates
from stowage.api.config.loading import KubeSchedulerConfiguration, load_configuration
from stowage.api.events import Event
from stowage.cli.configurator import Configurator
from stowage.cli.plugin_discovery import discover_plugins
from stowage.cli.profiles import make_extenders
from stowage.engine import Engine, make_engine
from stowage.framework import Handle
from stowage.recording.header import Header


def make_recorded_engine(
    header: Header, choose: Callable[[int], int], wall_clock: Callable[[], float]
) -> Engine:
    """The engine of a recording, as it was made; it repeats what was recorded.

    Raises:
        InvalidConfiguration: Its configuration needs plugins that are not installed here.
    """
    handle = Handle()
    configurator = _configurator(header, handle)
    configuration = load_configuration(header.configuration)
    settings = configurator.settings(configuration)
    engine = make_engine(
        settings.frameworks,
        choose,
        queue_settings=settings.queue_settings,
        extenders=make_extenders(configuration),
        wall_clock=wall_clock,
    )
    engine.follow_configuration(header.configuration_hash, configurator.configure)
    # The recording has the events that plugins posted.
    handle.connect(lambda _event: None, engine.waiting_pods)
    return engine


def _configurator(header: Header, handle: Handle) -> Configurator:
    gates = FeatureGates(header.feature_gates)
    registry = discover_plugins(handle, gates=gates)
    return Configurator(registry, header.max_in_unschedulable_s, gates)


class OtherProfiles(msgspec.Struct, frozen=True):
    """The profiles of an engine that decides by itself.

    Attributes:
        configuration: The configuration.
        weights: Plugin -> its weight instead of the configured one, in all profiles.
        scheduler_names: The scheduler names of pods; the first profile answers for those that no
            profile has.
    """

    configuration: KubeSchedulerConfiguration
    weights: Mapping[str, int] = {}
    scheduler_names: Iterable[str] = ()


def make_deciding_engine(
    header: Header, profiles: OtherProfiles, post: Callable[[Event], None]
) -> Engine:
    """An engine without pods that decides by itself, by these profiles.

    Args:
        header: The recording.
        profiles: The profiles.
        post: Receives the events of plugins.

    Raises:
        InvalidConfiguration: The configuration or a weight is invalid.
    """
    handle = Handle()
    configurator = _configurator(header, handle)
    settings = configurator.settings(profiles.configuration)
    frameworks = [with_weights(each, profiles.weights) for each in settings.frameworks]
    engine = make_engine(
        [*frameworks, *stand_ins_for(profiles.scheduler_names, frameworks)],
        lambda _num_ties: 0,
        queue_settings=settings.queue_settings,
        extenders=make_extenders(profiles.configuration),
    )
    engine.follow_configuration(header.configuration_hash, configurator.configure)
    handle.connect(post, engine.waiting_pods)
    return engine
