"""A profile with other weights of its score plugins."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from stowage.api.config.loading import ConfigError, InvalidConfiguration
from stowage.framework import Framework
from stowage.framework.profile.points import ExtensionPoint


def with_weights(framework: Framework, weights: Mapping[str, int]) -> Framework:
    """The framework with other weights.

    Raises:
        InvalidConfiguration: A plugin does not score in the profile.
    """
    if not weights:
        return framework
    profile = framework.profile
    scoring = {plugin.name for plugin in profile.plugins[ExtensionPoint.SCORE]}
    unknown = sorted(weights.keys() - scoring)
    if unknown:
        expected = (
            f"a score plugin of profile {profile.scheduler_name}: {', '.join(sorted(scoring))}"
        )
        raise InvalidConfiguration([ConfigError("--weights", unknown[0], expected)])
    changed = msgspec.structs.replace(profile, weights={**profile.weights, **weights})
    return Framework(changed)
