"""From a configuration to frameworks."""

from __future__ import annotations

import msgspec

from scheduler.api.config import ConfigError, InvalidConfiguration, KubeSchedulerConfiguration
from scheduler.framework import Framework, Registry, build_profile
from scheduler.plugins import in_tree_registry


def make_frameworks(
    configuration: KubeSchedulerConfiguration, registry: Registry | None = None
) -> list[Framework]:
    """One framework a profile, in the configuration's order.

    Args:
        configuration: With the profiles.
        registry: The plugins there are; None is those that come with the scheduler, see
            `discover_plugins` for more.

    Raises:
        InvalidConfiguration: plugins are unknown or their arguments wrong; all that is wrong in
            all profiles.
    """
    plugins = in_tree_registry() if registry is None else registry
    frameworks = []
    errors: list[ConfigError] = []
    for index, written in enumerate(configuration.profiles):
        profile = written
        if written.percentage_of_nodes_to_score is None:
            percentage = configuration.percentage_of_nodes_to_score
            profile = msgspec.structs.replace(written, percentage_of_nodes_to_score=percentage)
        try:
            resolved = build_profile(profile, plugins, f"profiles[{index}]")
        except InvalidConfiguration as invalid:
            errors += invalid.errors
        else:
            frameworks.append(Framework(resolved))
    if errors:
        raise InvalidConfiguration(errors)
    return frameworks
