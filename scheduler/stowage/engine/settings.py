"""The parts of a configuration that the engine uses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from stowage.api.config.loading import ConfigError, InvalidConfiguration
from stowage.framework.runtime.framework import Framework


class EngineSettings(msgspec.Struct, frozen=True):
    """The part of a configuration that an engine can change while it runs.

    Attributes:
        frameworks: At least one, used by this engine only. The first one's QueueSort orders the
            pods of all profiles.
        queue_settings: ``initial_backoff_s``, ``max_backoff_s``, ``max_in_unschedulable_s``,
            ``pops_from_backoff``.
    """

    frameworks: Sequence[Framework]
    queue_settings: Mapping[str, Any] = msgspec.field(default_factory=dict)


#: Makes settings from a configuration file's content; raises InvalidConfiguration.
Configure: TypeAlias = Callable[[Mapping[str, Any]], EngineSettings]


def not_configurable(configuration: Mapping[str, Any]) -> EngineSettings:
    """The `Configure` of an engine whose configuration does not change.

    Raises:
        InvalidConfiguration: Always.
    """
    kind = configuration.get("kind")
    raise InvalidConfiguration([ConfigError("kind", kind, "an engine that can be configured")])
