"""Configuration fields that can change while the scheduler runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from stowage.api.config.errors import ConfigError
from stowage.api.config.types import KubeSchedulerConfiguration

#: Fields that apply from the next cycle on; all others are read only at the start.
LIVE_FIELDS = frozenset(
    {
        "enableProfiling",
        "percentageOfNodesToScore",
        "podInitialBackoffSeconds",
        "podMaxBackoffSeconds",
        "profiles",
    }
)


def restart_errors(
    running: KubeSchedulerConfiguration, wanted: KubeSchedulerConfiguration
) -> list[ConfigError]:
    """The changes from `running` to `wanted` that need a restart.

    A configuration is applied as a whole or not at all, so that its hash identifies the fields in
    effect.
    """
    old, new = (msgspec.to_builtins(each, enc_hook=str) for each in (running, wanted))
    errors: list[ConfigError] = []
    for name in new:
        if name not in LIVE_FIELDS:
            errors += _differences(name, old[name], new[name])
    return errors


def _differences(path: str, old: Any, new: Any) -> Iterator[ConfigError]:
    if isinstance(old, Mapping) and isinstance(new, Mapping) and old.keys() == new.keys():
        for name in new:
            yield from _differences(f"{path}.{name}", old[name], new[name])
    elif old != new:
        shown = ConfigError(path, old, "").shown_value
        expectation = f"{shown} as at the start: a change of this field needs a restart"
        yield ConfigError(path, new, expectation)
