"""The named formats of Kubernetes: ``format.dns1123Label().validate(x)``.

A validation returns a list of messages, or nothing if the string has the format. The messages say
the same as Kubernetes', in fewer words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date
from math import ceil
from typing import Any

from stowage.cel.errors import CelRuntimeError
from stowage.cel.functions.costs import REGEX_LENGTH, TRAVERSAL
from stowage.cel.signatures.functions import Overload, overload
from stowage.cel.values.containers import NONE, Optional
from stowage.cel.values.named_format import NamedFormat
from stowage.cel.values.url import parse_request_uri

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DNS_LABEL = re.compile(_LABEL)
_SUBDOMAIN = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_DNS_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_UUID = re.compile(r"[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE)
_BASE64 = re.compile(
    r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"
)
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIME = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))")

_Problems = Callable[[str], list[str]]


def _matching(pattern: re.Pattern[str], longest: int, name: str) -> _Problems:
    def problems(text: str) -> list[str]:
        found = [] if len(text) <= longest else [f"must be no more than {longest} bytes"]
        if not pattern.fullmatch(text):
            found.append(f"a valid {name} must match {pattern.pattern}")
        return found

    return problems


def _as_prefix(problems: _Problems) -> _Problems:
    """The same for a text to which more is appended: it may end in a dash."""
    return lambda text: problems(text[:-2] + "a" if len(text) > 1 and text[-1] == "-" else text)


def _label_value(text: str) -> list[str]:
    return _matching(_NAME, 63, "label value")(text) if text else []


def _qualified_name(text: str) -> list[str]:
    parts = text.split("/")
    if len(parts) > 2:
        return ["a qualified name must have an optional DNS subdomain prefix and a name"]
    found = _matching(_NAME, 63, "name part")(parts[-1])
    if not parts[-1]:
        found.append("name part must be non-empty")
    if len(parts) == 1:
        return found
    return [*(_SUBDOMAIN_PROBLEMS(parts[0]) if parts[0] else ["prefix part is empty"]), *found]


def _uri(text: str) -> list[str]:
    try:
        parse_request_uri(text)
    except CelRuntimeError as error:
        return [str(error)]
    return []


def _is_date(text: str) -> bool:
    match = _DATE.fullmatch(text)
    if match is None:
        return False
    year, month, day = map(int, match.groups())
    try:
        date(year or 2000, month, day)  # Python has no year 0; it is a leap year like 2000
    except ValueError:
        return False
    return True


def _is_datetime(text: str) -> bool:
    day, separator, time = text.lower().partition("t")
    match = _TIME.fullmatch(time)
    if not separator or match is None or not _is_date(day):
        return False
    return match[1] <= "23" and match[2] <= "59" and match[3] <= "59"


def _required(condition: Callable[[str], object], problem: str) -> _Problems:
    return lambda text: [] if condition(text) else [problem]


_LABEL_PROBLEMS = _matching(_DNS_LABEL, 63, "lowercase RFC 1123 label")
_SUBDOMAIN_PROBLEMS = _matching(_SUBDOMAIN, 253, "lowercase RFC 1123 subdomain")
_DNS_1035_PROBLEMS = _matching(_DNS_1035, 63, "DNS-1035 label")

_FORMATS: Mapping[str, NamedFormat] = {
    "dns1123Label": NamedFormat("DNS1123Label", _LABEL_PROBLEMS, 30),
    "dns1123Subdomain": NamedFormat("DNS1123Subdomain", _SUBDOMAIN_PROBLEMS, 60),
    "dns1035Label": NamedFormat("DNS1035Label", _DNS_1035_PROBLEMS, 30),
    "qualifiedName": NamedFormat("QualifiedName", _qualified_name, 60),
    "dns1123LabelPrefix": NamedFormat("DNS1123LabelPrefix", _as_prefix(_LABEL_PROBLEMS), 30),
    "dns1123SubdomainPrefix": NamedFormat(
        "DNS1123SubdomainPrefix", _as_prefix(_SUBDOMAIN_PROBLEMS), 60
    ),
    "dns1035LabelPrefix": NamedFormat("DNS1035LabelPrefix", _as_prefix(_DNS_1035_PROBLEMS), 30),
    "labelValue": NamedFormat("LabelValue", _label_value, 40),
    "uri": NamedFormat("URI", _uri, 600),
    "uuid": NamedFormat("uuid", _required(_UUID.fullmatch, "does not match the UUID format"), 80),
    "byte": NamedFormat("byte", _required(_BASE64.fullmatch, "invalid base64"), 90),
    "date": NamedFormat("date", _required(_is_date, "invalid date"), 80),
    "datetime": NamedFormat("datetime", _required(_is_datetime, "invalid datetime"), 80),
}


def _named(name: str) -> Optional:
    return Optional(_FORMATS[name]) if name in _FORMATS else NONE


def _constant(found: NamedFormat) -> Callable[[], NamedFormat]:
    return lambda: found


def _validate(found: NamedFormat, text: str) -> Optional:
    problems = found.problems(text)
    return Optional(problems) if problems else NONE


def _validation_cost(args: tuple[Any, ...], _result: Any) -> int:
    found, text = args
    if not isinstance(found, NamedFormat) or not isinstance(text, str):
        return 1
    return ceil((1.0 + len(text)) * TRAVERSAL) * ceil(found.regex_size * REGEX_LENGTH)


FUNCTIONS: list[Overload] = [
    overload("format.named(string) -> optional_type(Format)", _named),
    overload("Format.validate(string) -> optional_type(list(string))", _validate, _validation_cost),
    *(overload(f"format.{name}() -> Format", _constant(found)) for name, found in _FORMATS.items()),
]
