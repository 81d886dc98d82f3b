"""Settings of profiles that are accepted and have no effect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from stowage.api.config.loading import KubeSchedulerConfiguration, KubeSchedulerProfile
from stowage.framework import Framework
from stowage.framework.profile.profile import PREEMPTION_PLUGIN

_PERCENTAGE = "percentageOfNodesToScore"


def profile_settings_without_effect(
    configuration: KubeSchedulerConfiguration,
    frameworks: Sequence[Framework],
    written: Mapping[str, Any] | None,
) -> Iterator[str]:
    """Yield ``field: reason`` for each such setting.

    Args:
        configuration: The configuration.
        frameworks: The frameworks of its profiles, in their order.
        written: The document that it was loaded from, to name a 0 that is the default.
    """
    yield from _zeros("", written or {})
    profiles = configuration.profiles
    is_written = (written or {}).get(_PERCENTAGE) is not None
    if is_written and all(each.percentage_of_nodes_to_score is not None for each in profiles):
        yield f"{_PERCENTAGE}: every profile has a value of its own"
    for index, (profile, framework) in enumerate(zip(profiles, frameworks, strict=True)):
        path = f"profiles[{index}]."
        yield from _zeros(path, {_PERCENTAGE: profile.percentage_of_nodes_to_score})
        yield from (f"{path}{text}" for text in _of_profile(profile, framework))


def _zeros(prefix: str, fields: Mapping[str, Any]) -> Iterator[str]:
    if fields.get(_PERCENTAGE) == 0:
        yield f"{prefix}{_PERCENTAGE}: 0 scores all nodes; kube-scheduler's 0 is adaptive here"


def _of_profile(profile: KubeSchedulerProfile, framework: Framework) -> Iterator[str]:
    ties = profile.tie_breaking
    if ties.seed and ties.type != "FixedOrder":
        yield f"tieBreaking.seed: {ties.type} has no seed, FixedOrder has"
    used = {each.name for plugins in framework.profile.plugins.values() for each in plugins}
    asked_in_ties = {each.name for each in ties.score_plugins if each.args is None}
    for index, entry in enumerate(profile.plugin_config):
        if entry.name not in used | asked_in_ties:
            yield f"pluginConfig[{index}].args: the profile does not run {entry.name}"
    if profile.disable_preemption and _is_disabled(profile):
        yield f"disablePreemption: {PREEMPTION_PLUGIN} is disabled already"


def _is_disabled(profile: KubeSchedulerProfile) -> bool:
    """Whether the profile would not have the preemption plugin in any case."""
    names = {"*", PREEMPTION_PLUGIN}
    points = (profile.plugins.multi_point, profile.plugins.post_filter)
    enabled = {each.name for point in points for each in point.enabled}
    disabled = {each.name for point in points for each in point.disabled}
    return bool(names & disabled) and PREEMPTION_PLUGIN not in enabled
