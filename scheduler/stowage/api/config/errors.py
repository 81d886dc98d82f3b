"""Errors in a configuration; all of them are reported at once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from stowage.api.values.printable import printable

MAX_ERRORS = 100
"""More would fill the log and ``/readyz?verbose``: who writes the ConfigMap decides how many."""
_SHOWN_CHARACTERS = 60
_PRIVATE = "keyData"
"""A field that is never shown: errors appear in logs, Events and public health checks."""
_NOT_SHOWN = "(not shown)"
_CREDENTIALS = re.compile(r"//[^/?#]*@")
_CREDENTIALS_IN_JSON = re.compile(r"""//(?:[^/?#"\\]|\\.)*@""")


def without_credentials(url: str) -> str:
    """A URL without user name and password."""
    return _CREDENTIALS.sub("//", url)


class ConfigError(msgspec.Struct, frozen=True):
    """An error in a configuration.

    Attributes:
        path: The field, e.g. ``profiles[0].pluginConfig[0].args.scoringStrategy.type``.
        value: The value of the field.
        expectation: What the field should be.
    """

    path: str
    value: object
    expectation: str

    def __str__(self) -> str:
        return printable(f"{self.path}: {self.shown_value} (expected {self.expectation})")

    @property
    def shown_value(self) -> str:
        """The value on one line, without secrets; shortened unless it is that of a flag."""
        value = _NOT_SHOWN if self.path.endswith(f".{_PRIVATE}") else _without_keys(self.value)
        encoded = msgspec.json.encode(value, enc_hook=str).decode()
        text = _CREDENTIALS_IN_JSON.sub("//", encoded)
        is_short = len(text) <= _SHOWN_CHARACTERS or self.path.startswith("--")
        return text if is_short else f"{text[:_SHOWN_CHARACTERS]}..."

    def under(self, prefix: str) -> ConfigError:
        """The same error with a prefix to its path."""
        return ConfigError(f"{prefix}.{self.path}", self.value, self.expectation)


def _without_keys(value: Any) -> Any:
    if isinstance(value, Mapping):
        shown = {name: _without_keys(each) for name, each in value.items()}
        return {**shown, _PRIVATE: _NOT_SHOWN} if _PRIVATE in shown else shown
    if isinstance(value, list | tuple):
        return [_without_keys(each) for each in value]
    return value


class InvalidConfiguration(ValueError):  # noqa: N818 - as InvalidObject: it names the finding
    """A configuration that cannot be used; `errors` lists the errors, at most `MAX_ERRORS`."""

    def __init__(self, errors: Iterable[ConfigError]) -> None:
        found = tuple(errors)
        if len(found) > MAX_ERRORS:
            num_left = len(found) - MAX_ERRORS + 1
            more = ConfigError("<root>", num_left, "no more errors; so many are not listed")
            found = (*found[: MAX_ERRORS - 1], more)
        self.errors = found
        super().__init__("; ".join(map(str, self.errors)))
