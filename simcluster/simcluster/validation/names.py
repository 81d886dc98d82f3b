"""Names, labels and keys: the forms they must have, and what is said when they have not.

Follows apimachinery's ``util/validation``: each check returns messages, none for a good value.
"""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

NameCheck = Callable[[str], Sequence[str]]

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_DNS_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = f"({_QUALIFIED})?"
_CONFIG_KEY = "[-._a-zA-Z0-9]+"
_ALPHANUMERIC = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character"
)


def max_length(length: int) -> str:
    """What is said of a text that is too long."""
    return f"must be no more than {length} bytes"


def in_range(lowest: int, highest: int) -> str:
    """What is said of a number out of range."""
    return f"must be between {lowest} and {highest}, inclusive"


def _wrong(message: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{message} (e.g. {shown}regex used for validation is '{pattern}')"


_LABEL_RULE = _wrong(
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character",
    _LABEL,
    "my-name",
    "123-abc",
)
_SUBDOMAIN_RULE = _wrong(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character",
    _SUBDOMAIN,
    "example.com",
)
_DNS_1035_RULE = _wrong(
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character",
    _DNS_1035,
    "my-name",
    "abc-123",
)
_QUALIFIED_RULE = _wrong(_ALPHANUMERIC, _QUALIFIED, "MyName", "my.name", "123-abc")
_LABEL_VALUE_RULE = _wrong(
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    "'.', and must start and end with an alphanumeric character",
    _LABEL_VALUE,
    "MyValue",
    "my_value",
    "12345",
)
_CONFIG_KEY_RULE = _wrong(
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
    _CONFIG_KEY,
    "key.name",
    "KEY_NAME",
    "key-name",
)

_is_label = re.compile(_LABEL).fullmatch
_is_subdomain = re.compile(_SUBDOMAIN).fullmatch
_is_dns_1035 = re.compile(_DNS_1035).fullmatch
_is_qualified = re.compile(_QUALIFIED).fullmatch
_is_label_value = re.compile(_LABEL_VALUE).fullmatch
_is_config_key = re.compile(_CONFIG_KEY).fullmatch


def _size(text: str) -> int:
    return len(text.encode())


def dns_label(text: str) -> list[str]:
    """RFC 1123 label, such as a namespace's name."""
    found = [max_length(63)] if _size(text) > 63 else []
    if not _is_label(text):
        found.append("must not contain dots" if _is_subdomain(text) else _LABEL_RULE)
    return found


def dns_subdomain(text: str) -> list[str]:
    """RFC 1123 subdomain, the usual name."""
    found = [max_length(253)] if _size(text) > 253 else []
    return found if _is_subdomain(text) else [*found, _SUBDOMAIN_RULE]


def dns_1035_label(text: str) -> list[str]:
    """RFC 1035 label, such as a service's name."""
    found = [max_length(63)] if _size(text) > 63 else []
    return found if _is_dns_1035(text) else [*found, _DNS_1035_RULE]


def path_segment(text: str) -> list[str]:
    """Anything that fits into a URL, such as a role's name."""
    if text in {".", ".."}:
        return [f"may not be '{text}'"]
    return [f"may not contain '{illegal}'" for illegal in "/%" if illegal in text]


@lru_cache(maxsize=4096)
def qualified_name(text: str) -> Sequence[str]:
    """A label key: a name, perhaps behind ``example.com/``."""
    parts = text.split("/")
    if len(parts) > 2:
        rule = f"a qualified name {_QUALIFIED_RULE}"
        return (
            f"{rule} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
        )
    found: list[str] = []
    if len(parts) == 2:
        if not parts[0]:
            found.append("prefix part must be non-empty")
        else:
            found += [f"prefix part {message}" for message in dns_subdomain(parts[0])]
    name = parts[-1]
    if not name:
        found.append("name part must be non-empty")
    elif _size(name) > 63:
        found.append(f"name part {max_length(63)}")
    if not _is_qualified(name):
        found.append(f"name part {_QUALIFIED_RULE}")
    return tuple(found)


@lru_cache(maxsize=4096)
def label_value(text: str) -> Sequence[str]:
    """A label's value."""
    found = (max_length(63),) if _size(text) > 63 else ()
    return found if _is_label_value(text) else (*found, _LABEL_VALUE_RULE)


def config_key(text: str) -> list[str]:
    """A key of a ConfigMap or Secret."""
    found = [max_length(253)] if _size(text) > 253 else []
    if not _is_config_key(text):
        found.append(_CONFIG_KEY_RULE)
    elif text == ".":
        found.append("must not be '.'")
    elif text.startswith(".."):
        found.append("must not be '..'" if text == ".." else "must not start with '..'")
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
    if not text:
        return ["environment variable name must be non-empty"]
    if all(" " <= character <= "~" and character != "=" for character in text):
        return []
    rule = "a valid environment variable name must consist only of printable ASCII characters"
    return [f"{rule} other than '='"]
