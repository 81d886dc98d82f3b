"""Forms of names, labels and keys, and the messages about a wrong form.

Follows apimachinery's ``util/validation``: each check returns messages, none for a good value.
"""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

NameCheck = Callable[[Any], Sequence[str]]
"""Messages about a text, or a number."""

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_EDGES = "must start and end with an alphanumeric character"


def max_length(length: int, unit: str = "characters") -> str:
    """The message about a text that is too long; the API server counts bytes in any case."""
    return f"must be no more than {length} {unit}"


def in_range(lowest: int, highest: int) -> str:
    """The message about a number out of range."""
    return f"must be between {lowest} and {highest}, inclusive"


class _Form:
    """A pattern, the longest text it takes, and the message about a text that does not match."""

    def __init__(
        self, limit: int, message: str, pattern: str, *examples: str, unit: str = "characters"
    ) -> None:
        self._limit = limit
        self._unit = unit
        self.matches = re.compile(pattern).fullmatch
        shown = " or ".join(f"'{example}', " for example in examples)
        self.rule = f"{message} (e.g. {shown}regex used for validation is '{pattern}')"

    def too_long(self, text: str) -> list[str]:
        return [max_length(self._limit, self._unit)] if len(text.encode()) > self._limit else []

    def errors(self, text: str) -> list[str]:
        return self.too_long(text) + ([] if self.matches(text) else [self.rule])


_label = _Form(
    63,
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    + _EDGES,
    _LABEL,
    "my-name",
    "123-abc",
)
_subdomain = _Form(
    253,
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    f"'.', and {_EDGES}",
    _SUBDOMAIN,
    "example.com",
)
_dns_1035 = _Form(
    63,
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character",
    "[a-z]([-a-z0-9]*[a-z0-9])?",
    "my-name",
    "abc-123",
)
_qualified = _Form(
    63,
    f"must consist of alphanumeric characters, '-', '_' or '.', and {_EDGES}",
    _QUALIFIED,
    "MyName",
    "my.name",
    "123-abc",
    unit="bytes",
)
_value = _Form(
    63,
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    f"'.', and {_EDGES}",
    f"({_QUALIFIED})?",
    "MyValue",
    "my_value",
    "12345",
    unit="bytes",
)
_config_key = _Form(
    253,
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
    "[-._a-zA-Z0-9]+",
    "key.name",
    "KEY_NAME",
    "key-name",
)
dns_subdomain: NameCheck = _subdomain.errors
"""RFC 1123 subdomain, the usual name."""
dns_1035_label: NameCheck = _dns_1035.errors
"""RFC 1035 label, such as a service's name."""
label_value: NameCheck = lru_cache(maxsize=4096)(_value.errors)
"""A label's value."""


def dns_label(text: str) -> list[str]:
    """RFC 1123 label, such as a namespace's name."""
    if not _label.matches(text) and _subdomain.matches(text):
        return [*_label.too_long(text), "must not contain dots"]
    return _label.errors(text)


def path_segment(text: str) -> list[str]:
    """Anything that fits into a URL, such as a role's name."""
    if text in {".", ".."}:
        return [f"may not be '{text}'"]
    return [f"may not contain '{illegal}'" for illegal in "/%" if illegal in text]


@lru_cache(maxsize=4096)
def qualified_name(text: str) -> Sequence[str]:
    """A label key: a name, perhaps behind ``example.com/``."""
    prefix, has_prefix, name = text.rpartition("/")
    if "/" in prefix:
        rule = f"a valid label key {_qualified.rule}"
        return (
            f"{rule} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
        )
    found: list[str] = []
    if has_prefix and not prefix:
        found.append("prefix part must be non-empty")
    elif has_prefix:
        found += [f"prefix part {message}" for message in dns_subdomain(prefix)]
    if not name:
        found.append("name part must be non-empty")
    return (*found, *(f"name part {message}" for message in _qualified.errors(name)))


def config_key(text: str) -> list[str]:
    """A key of a ConfigMap or Secret."""
    found = _config_key.errors(text)
    if text in {".", ".."}:
        found.append(f"must not be '{text}'")
    elif text.startswith("..") and _config_key.matches(text):
        found.append("must not start with '..'")
    return found


def port_number(port: int) -> list[str]:
    """A port."""
    return [] if 1 <= port <= 65535 else [in_range(1, 65535)]


def port_name(text: str) -> list[str]:
    """A port's name, as IANA allows it."""
    rules = (
        (len(text) > 15, max_length(15)),
        (
            not re.fullmatch("[-a-z0-9]+", text),
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
        ),
        (not re.search("[a-z]", text), "must contain at least one letter (a-z)"),
        ("--" in text, "must not contain consecutive hyphens"),
        (text[:1] == "-" or text[-1:] == "-", "must not begin or end with a hyphen"),
    )
    return [message for is_wrong, message in rules if is_wrong]


def environment_name(text: str) -> list[str]:
    """An environment variable's name, as of v1.30: printable ASCII other than ``=``."""
    if all(" " <= character <= "~" and character != "=" for character in text):
        return []
    rule = "a valid environment variable name must consist only of printable ASCII characters"
    return [f"{rule} other than '='"]
