"""What is wrong with a configuration, so that its author can put all of it right at once."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

_SHOWN_CHARACTERS = 60


class ConfigError(msgspec.Struct, frozen=True):
    """One mistake in the configuration.

    Attributes:
        path: Where, e.g. ``profiles[0].pluginConfig[0].args.scoringStrategy.type``.
        value: What stands there.
        expectation: What should stand there.
    """

    path: str
    value: object
    expectation: str

    def __str__(self) -> str:
        return f"{self.path}: {self.shown_value} (expected {self.expectation})"

    @property
    def shown_value(self) -> str:
        """The value as the author would recognise it, on one line, shortened."""
        text = msgspec.json.encode(self.value, enc_hook=str).decode()
        return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."

    def under(self, prefix: str) -> ConfigError:
        """The same mistake, its path seen from further up."""
        return ConfigError(f"{prefix}.{self.path}", self.value, self.expectation)


class InvalidConfiguration(ValueError):  # noqa: N818 - as InvalidObject: it names the finding
    """A configuration that cannot be used; `errors` holds every mistake found."""

    def __init__(self, errors: Iterable[ConfigError]) -> None:
        self.errors = tuple(errors)
        super().__init__("; ".join(map(str, self.errors)))
