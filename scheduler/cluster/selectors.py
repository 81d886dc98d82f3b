"""Label and field selectors over stored objects: which fields each kind can be selected by."""

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
from scheduler.cluster.errors import ApiError, bad_request
from scheduler.cluster.resources import Resource

Json = dict[str, Any]
Predicate = Callable[[Json], bool]
LabelTest = Callable[[Mapping[str, str]], bool]

_FIELD_PATHS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "pods": {
        "spec.nodeName": ("spec", "nodeName"),
        "spec.restartPolicy": ("spec", "restartPolicy"),
        "spec.schedulerName": ("spec", "schedulerName"),
        "spec.serviceAccountName": ("spec", "serviceAccountName"),
        "status.phase": ("status", "phase"),
        "status.podIP": ("status", "podIP"),
        "status.nominatedNodeName": ("status", "nominatedNodeName"),
    },
    "nodes": {"spec.unschedulable": ("spec", "unschedulable")},
    "namespaces": {"status.phase": ("status", "phase")},
    "secrets": {"type": ("type",)},
    "jobs.batch": {"status.successful": ("status", "succeeded")},
    "events": {
        **{
            f"{prefix}.{key}": ("involvedObject", key)
            for prefix in ("involvedObject", "regarding")
            for key in (
                "kind",
                "namespace",
                "name",
                "uid",
                "apiVersion",
                "resourceVersion",
                "fieldPath",
            )
        },
        "reason": ("reason",),
        "type": ("type",),
        "source": ("source", "component"),
        "reportingComponent": ("reportingComponent",),
        "reportingController": ("reportingComponent",),
    },
}
_NAME_PATHS = {
    "metadata.name": ("metadata", "name"),
    "metadata.namespace": ("metadata", "namespace"),
}


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


def field_test(text: str, resource: Resource) -> Predicate | None:
    """Compile a field selector of ``resource``; ``None`` selects everything.

    Raises:
        ApiError: 400, it cannot be parsed or names a field the resource does not index.
    """
    try:
        requirements = parse_field_selector(text).requirements
    except SelectorError as error:
        raise bad_request(str(error)) from error
    tests = [_field_test(requirement, resource) for requirement in requirements]
    if not tests:
        return None
    if len(tests) == 1:
        return tests[0]
    return lambda obj: all(test(obj) for test in tests)


def _field_test(requirement: FieldRequirement, resource: Resource) -> Predicate:
    field, value, equals = requirement.field, requirement.value, requirement.equals
    path = _field_path(field, resource)

    def test(obj: Json) -> bool:
        found: Any = obj
        for key in path:
            found = found.get(key) if isinstance(found, dict) else None
        return (_as_text(found, field) == value) is equals

    return test


def _field_path(field: str, resource: Resource) -> tuple[str, ...]:
    path = _NAME_PATHS.get(field) or _FIELD_PATHS.get(resource.stored_in, {}).get(field)
    if path is None or (field == "metadata.namespace" and not resource.namespaced):
        raise _unknown_field(field)
    return path


def _unknown_field(field: str) -> ApiError:
    return bad_request(f"field label not supported: {field}")


def _as_text(value: object, field: str) -> str:
    if value is None:
        return "false" if field == "spec.unschedulable" else ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
