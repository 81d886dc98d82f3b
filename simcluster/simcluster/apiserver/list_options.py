"""Parses and checks the query of list and watch requests."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from simcluster.apiserver import errors
from simcluster.apiserver.errors import FieldError, forbidden_field, unsupported_value

_EXACT = "Exact"
_NOT_OLDER_THAN = "NotOlderThan"
_INTEGER = re.compile(r"[+-]?[0-9]+")
_BITS = 63
_MATCH_FIELD = "resourceVersionMatch"


@dataclass(frozen=True)
class ListOptions:
    """The query of a list or watch request.

    ``timeout_s`` is 0 where the request leaves it to the server.
    """

    label_selector: str = ""
    field_selector: str = ""
    resource_version: str = ""
    resource_version_match: str = ""
    limit: int = 0
    continue_: str = ""
    watch: bool = False
    allow_watch_bookmarks: bool = False
    send_initial_events: bool | None = None
    timeout_s: int = 0


def parse_list_options(query: Mapping[str, str]) -> ListOptions:
    """Read list options.

    Raises:
        ApiError: 400, a number is malformed.
    """
    initial = query.get("sendInitialEvents")
    return ListOptions(
        label_selector=query.get("labelSelector", ""),
        field_selector=query.get("fieldSelector", ""),
        resource_version=query.get("resourceVersion", ""),
        resource_version_match=query.get("resourceVersionMatch", ""),
        limit=_number(query.get("limit")),
        continue_=query.get("continue", ""),
        watch=is_set(query.get("watch")),
        allow_watch_bookmarks=is_set(query.get("allowWatchBookmarks")),
        send_initial_events=None if initial is None else is_set(initial),
        timeout_s=_number(query.get("timeoutSeconds")),
    )


def is_set(text: str | None) -> bool:
    """Whether a parameter is given and neither ``false`` nor 0, as Go reads booleans."""
    return text is not None and text.lower() not in {"false", "0"}


def _number(text: str | None) -> int:
    if text is None:
        return 0
    if _INTEGER.fullmatch(text) is None:
        raise errors.bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    number = int(text)
    if number.bit_length() > _BITS:
        raise errors.bad_request(f'strconv.ParseInt: parsing "{text}": value out of range')
    return number


def completed(options: ListOptions) -> ListOptions:
    """Options with the defaults of a watch: without a revision it starts with current objects."""
    is_legacy = options.send_initial_events is None and not options.resource_version_match
    if options.watch and is_legacy and options.resource_version in {"", "0"}:
        return replace(options, send_initial_events=True, resource_version_match=_NOT_OLDER_THAN)
    return options


def check_list_options(options: ListOptions) -> None:
    """Refuse options that contradict each other (apimachinery's ``ValidateListOptions``).

    Raises:
        ApiError: 422.
    """
    found = _watch_errors(options) if options.watch else _list_errors(options)
    if found:
        raise errors.invalid("meta.k8s.io", "ListOptions", "", found)


def _list_errors(options: ListOptions) -> list[FieldError]:
    match = options.resource_version_match
    found = [
        (match and not options.resource_version, _MATCH_NEEDS_VERSION),
        (match and options.continue_, _MATCH_WITH_CONTINUE),
        (
            match not in {"", _EXACT, _NOT_OLDER_THAN},
            _unsupported(match, _EXACT, _NOT_OLDER_THAN, ""),
        ),
        (match == _EXACT and options.resource_version == "0", _EXACTLY_ZERO),
        (options.send_initial_events is not None, _INITIAL_EVENTS_OF_LIST),
    ]
    return [error for is_wrong, error in found if is_wrong]


def _watch_errors(options: ListOptions) -> list[FieldError]:
    match, initial = options.resource_version_match, options.send_initial_events is not None
    found = [
        (initial and match != _NOT_OLDER_THAN, _INITIAL_EVENTS_NEED_MATCH),
        (match and not initial, _MATCH_NEEDS_INITIAL_EVENTS),
        (match not in {"", _NOT_OLDER_THAN}, _unsupported(match, _NOT_OLDER_THAN)),
        (match and options.continue_, _MATCH_WITH_CONTINUE),
    ]
    return [error for is_wrong, error in found if is_wrong]


def _forbidden(why: str) -> FieldError:
    return forbidden_field(_MATCH_FIELD, f"{_MATCH_FIELD} {why}")


def _unsupported(match: str, *supported: str) -> FieldError:
    return unsupported_value(_MATCH_FIELD, match, supported)


_MATCH_NEEDS_VERSION = _forbidden("is forbidden unless resourceVersion is provided")
_MATCH_WITH_CONTINUE = _forbidden("is forbidden when continue is provided")
_MATCH_NEEDS_INITIAL_EVENTS = _forbidden(
    "is forbidden for watch unless sendInitialEvents is provided"
)
_EXACTLY_ZERO = _forbidden('"exact" is forbidden for resourceVersion "0"')
_INITIAL_EVENTS_OF_LIST = forbidden_field(
    "sendInitialEvents", "sendInitialEvents is forbidden for list"
)
_INITIAL_EVENTS_NEED_MATCH = forbidden_field(
    _MATCH_FIELD, f"sendInitialEvents requires setting {_MATCH_FIELD} to {_NOT_OLDER_THAN}"
)
