"""Compiles label and field selectors into tests of stored objects."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from simcluster.apiserver.errors import bad_request
from simcluster.kinds.resources import EVENTS_V1, Resource
from simcluster.store.json_path import compile_path
from simcluster.store.selectable_fields import field_position, has_fields
from simcluster.store.stored import Stored
from stowage.api import (
    LabelSelector,
    SelectorError,
    compile_label_selector,
    parse_field_selector,
    parse_label_selector,
)
from stowage.api.decoding.decode import convert_object
from stowage.api.values.selector_syntax import FieldRequirement

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


_OPERATORS = {"In": "in", "NotIn": "notin"}


def selector_text(selector: Json | None) -> str:
    """A ``LabelSelector`` in selector syntax, sorted by keys; empty for none."""
    selector = selector or {}
    parts = [(key, f"{key}={value}") for key, value in (selector.get("matchLabels") or {}).items()]
    for term in selector.get("matchExpressions") or ():
        key, operator = term["key"], term["operator"]
        if operator in _OPERATORS:
            values = ",".join(sorted(term.get("values") or ()))
            parts.append((key, f"{key} {_OPERATORS[operator]} ({values})"))
        else:
            parts.append((key, key if operator == "Exists" else f"!{key}"))
    return ",".join(text for _, text in sorted(parts))


class _Fields(NamedTuple):
    """The fields of a kind that selectors support.

    Args:
        collection: of its objects.
        api_version: of the served kind.
        namespaced: whether objects have a namespace.
        paths: the selectable fields of a custom kind; ``None`` for a built-in kind.
    """

    collection: str
    api_version: str
    namespaced: bool
    paths: tuple[str, ...] | None

    @property
    def has_own_fields(self) -> bool:
        """Whether there are fields besides name and namespace."""
        return self.paths is not None or has_fields(self.collection)

    def refusal(self, field: str) -> str:
        """The error of an unsupported field; the API server words it differently for some kinds."""
        if self.collection == "jobs.batch":
            return f'field label "{field}" not supported for batchv1.Job'
        if self.collection == "resourceslices.resource.k8s.io":
            kind = f"{self.api_version}, Kind=ResourceSlice"
            return f"field label not supported for {kind}: {field}"
        if self.has_own_fields:
            return f"field label not supported: {field}"
        return (
            f'"{field}" is not a known field selector: only "metadata.name", "metadata.namespace"'
        )


def field_test(text: str, resource: Resource) -> FieldTest | None:
    """Compile a field selector of ``resource``; ``None`` selects everything.

    Raises:
        ApiError: 400, the selector cannot be parsed or names an unsupported field.
    """
    if not text:
        return None
    paths = resource.custom.selectable_fields if resource.custom is not None else None
    fields = _Fields(resource.stored_in, resource.api_version, resource.namespaced, paths)
    return _field_tests(text, fields)


@lru_cache(maxsize=512)
def _field_tests(text: str, fields: _Fields) -> FieldTest | None:
    try:
        requirements = parse_field_selector(text).requirements
    except SelectorError as error:
        raise bad_request(str(error)) from error
    tests = [_field_test(requirement, fields) for requirement in requirements]
    if not tests:
        return None
    if len(tests) == 1:
        return tests[0]
    return lambda stored: all(test(stored) for test in tests)


def _field_test(requirement: FieldRequirement, fields: _Fields) -> FieldTest:
    field, value, equals = requirement.field, requirement.value, requirement.equals
    if field == "metadata.name":
        return lambda stored: (stored.name == value) is equals
    if field == "metadata.namespace" and (fields.namespaced or not fields.has_own_fields):
        return lambda stored: (stored.namespace == value) is equals
    if f".{field}" in (fields.paths or ()):
        read = compile_path(f".{field}")
        return lambda stored: (_text(read(stored.obj)) == value) is equals
    is_events_v1 = fields.api_version == EVENTS_V1.api_version
    position = field_position(fields.collection, field, events_v1=is_events_v1)
    if position is None:
        raise bad_request(fields.refusal(field))
    return lambda stored: (stored.fields[position] == value) is equals


def _text(found: list[Any]) -> str:
    """The text of a field that selectors compare."""
    value = found[0] if found else ""
    return str(value).lower() if isinstance(value, bool) else str(value)
