"""Label and field selectors, compiled once into tests of stored objects."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from scheduler.api import (
    LabelSelector,
    SelectorError,
    compile_label_selector,
    parse_field_selector,
    parse_label_selector,
)
from scheduler.api.decode import convert_object
from scheduler.api.selector_syntax import FieldRequirement
from scheduler.cluster.errors import bad_request
from scheduler.cluster.resources import Resource
from scheduler.cluster.selectable_fields import field_position
from scheduler.cluster.stored import Stored

Json = dict[str, Any]
LabelTest = Callable[[Mapping[str, str]], bool]
FieldTest = Callable[[Stored], bool]


@lru_cache(maxsize=512)
def label_test(text: str) -> LabelTest | None:
    """Compile a label selector (``a=b,c in (d,e),!f``); ``None`` selects everything.

    Raises:
        ApiError: 400, the selector cannot be parsed.
    """
    try:
        selector = parse_label_selector(text)
    except SelectorError as error:
        raise bad_request(str(error)) from error
    return None if selector.matches_everything else selector.matches


def match_label_selector(selector: Json | None, labels: Mapping[str, str]) -> bool:
    """Whether labels match a ``LabelSelector`` object; none, or a faulty one, matches nothing."""
    if selector is None:
        return False
    try:
        compiled = compile_label_selector(convert_object(LabelSelector, selector))
    except ValueError:
        return False
    return compiled.matches(labels)


def field_test(text: str, resource: Resource) -> FieldTest | None:
    """Compile a field selector of ``resource``; ``None`` selects everything.

    Raises:
        ApiError: 400, it cannot be parsed or names a field the resource does not index.
    """
    return _field_tests(text, resource.stored_in, resource.namespaced) if text else None


@lru_cache(maxsize=512)
def _field_tests(text: str, collection: str, namespaced: bool) -> FieldTest | None:
    try:
        requirements = parse_field_selector(text).requirements
    except SelectorError as error:
        raise bad_request(str(error)) from error
    tests = [_field_test(requirement, collection, namespaced) for requirement in requirements]
    if not tests:
        return None
    if len(tests) == 1:
        return tests[0]
    return lambda stored: all(test(stored) for test in tests)


def _field_test(requirement: FieldRequirement, collection: str, namespaced: bool) -> FieldTest:
    field, value, equals = requirement.field, requirement.value, requirement.equals
    if field == "metadata.name":
        return lambda stored: (stored.name == value) is equals
    if field == "metadata.namespace" and namespaced:
        return lambda stored: (stored.namespace == value) is equals
    position = field_position(collection, field)
    if position is None:
        raise bad_request(f"field label not supported: {field}")
    return lambda stored: (stored.fields[position] == value) is equals
