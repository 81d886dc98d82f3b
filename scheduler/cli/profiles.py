"""From a configuration to frameworks."""

from __future__ import annotations

import msgspec

from scheduler.api.config import ConfigError, InvalidConfiguration, KubeSchedulerConfiguration
from scheduler.framework import Framework, build_profile
from scheduler.plugins import in_tree_registry


def make_frameworks(configuration: KubeSchedulerConfiguration) -> list[Framework]:
    """One framework a profile, in the configuration's order.

    Raises:
        InvalidConfiguration: plugins are unknown or their arguments wrong; all that is wrong in
            all profiles.
    """
    registry = in_tree_registry()
    frameworks = []
    errors: list[ConfigError] = []
    for index, written in enumerate(configuration.profiles):
        profile = written
        if written.percentage_of_nodes_to_score is None:
            percentage = configuration.percentage_of_nodes_to_score
            profile = msgspec.structs.replace(written, percentage_of_nodes_to_score=percentage)
        try:
            resolved = build_profile(profile, registry, f"profiles[{index}]")
        except InvalidConfiguration as invalid:
            errors += invalid.errors
        else:
            frameworks.append(Framework(resolved))
    if errors:
        raise InvalidConfiguration(errors)
    return frameworks
