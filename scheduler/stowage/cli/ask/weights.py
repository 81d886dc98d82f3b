"""Other weights of score plugins (``--weights``)."""

from __future__ import annotations

from collections.abc import Sequence

from stowage.api.config.loading import ConfigError, InvalidConfiguration


def parse_weights(texts: Sequence[str]) -> dict[str, int]:
    """Plugin -> weight.

    Raises:
        InvalidConfiguration: A text is not PLUGIN=WEIGHT.
    """
    found = {}
    for text in texts:
        plugin, equals, weight = text.partition("=")
        if not (plugin and equals and weight.isdigit()):
            raise InvalidConfiguration([ConfigError("--weights", text, "PLUGIN=WEIGHT")])
        found[plugin] = int(weight)
    return found
