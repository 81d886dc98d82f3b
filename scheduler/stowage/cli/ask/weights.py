"""Other weights of score plugins (``--weights``)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from stowage.api.config.loading import ConfigError, InvalidConfiguration
from stowage.api.config.types import INT32_MAX

_DIGITS = re.compile("[0-9]{1,10}")


def parse_weights(texts: Sequence[str]) -> dict[str, int]:
    """Plugin -> weight.

    Raises:
        InvalidConfiguration: A text is not PLUGIN=WEIGHT, or names the plugin of another one.
    """
    found: dict[str, int] = {}
    for text in texts:
        plugin, equals, weight = text.partition("=")
        if not (plugin and equals and _DIGITS.fullmatch(weight) and int(weight) <= INT32_MAX):
            expected = f"PLUGIN=WEIGHT, a weight from 0 to {INT32_MAX}"
            raise InvalidConfiguration([ConfigError("--weights", text, expected)])
        if plugin in found:
            raise InvalidConfiguration([ConfigError("--weights", text, "one weight of a plugin")])
        found[plugin] = int(weight)
    return found
