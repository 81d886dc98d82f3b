"""Manifests that a person types: their objects, and their errors by line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec
import yaml

from stowage.analysis.cluster_objects import ClusterObjects
from stowage.analysis.workload_pods import InvalidManifest, objects_of_manifests
from stowage.api.decoding.bounded_yaml import INVALID, documents
from stowage.api.decoding.document_lines import line_of
from stowage.api.decoding.errors import InvalidObject
from stowage.api.decoding.nesting import problem_of
from stowage.console.answers.answer import Answer

MAX_CHARACTERS = 2**20
MAX_PODS = 100_000
"""The pods of one workload: more fill the memory of this machine, not of the cluster."""

_FIELD = re.compile(r"^\S+(?: \S+)?: ([^:\s]+): ")
_TEMPLATES = ("", "spec.template.", "spec.jobTemplate.spec.template.")
"""Where an object, or the pods of a workload, have their fields."""


class ManifestError(Answer, frozen=True, omit_defaults=True):
    """An error; `line` and `column` count from 1, 0 if they are not known."""

    message: str
    line: int = 0
    column: int = 0
    field: str = ""


class ManifestObject(Answer, frozen=True):
    """An object of the manifests, and the number of pods that it makes."""

    kind: str
    name: str
    pods: int
    line: int


class ManifestCheck(Answer, frozen=True):
    """What is in the manifests."""

    objects: list[ManifestObject]
    errors: list[ManifestError]


class _Item(msgspec.Struct, frozen=True):
    """An object as it is written: its value, and its node, which knows the lines."""

    value: Any
    node: yaml.Node

    @property
    def line(self) -> int:
        return int(self.node.start_mark.line) + 1


def check_manifests(text: str, cluster: ClusterObjects) -> ManifestCheck:
    """The objects of manifests, each checked by itself beside those before it."""
    items, errors = _items(text)
    objects: list[ManifestObject] = []
    named: list[dict[str, Any]] = []
    for item in items:
        try:
            made = objects_of_manifests([*named, item.value], cluster)
        except (InvalidManifest, InvalidObject) as invalid:
            errors.append(_located(invalid, item))
            continue
        num_pods = len(made.pods())
        # Pods name priority classes and templates, never other pods.
        named += [] if num_pods else [item.value]
        objects.append(ManifestObject(item.value["kind"], _name(item.value), num_pods, item.line))
    return ManifestCheck(objects, errors)


def manifest_items(text: str) -> list[dict[str, Any]]:
    """The objects of manifests as they are written; without those that `check_manifests` refuses.

    The caller checks them first.
    """
    return [item.value for item in _items(text)[0]]


def _items(text: str) -> tuple[list[_Item], list[ManifestError]]:
    if len(text) > MAX_CHARACTERS:
        return [], [ManifestError(f"expected at most {MAX_CHARACTERS:,} characters")]
    items: list[_Item] = []
    errors: list[ManifestError] = []
    try:
        for document in documents(text):
            for each in _unfolded(*document):
                error = _shape_error(each)
                errors += [error] if error else []
                items += [] if error else [each]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (0, 0) if mark is None else (mark.line + 1, mark.column + 1)
        errors.append(ManifestError(error.problem or "expected YAML", line, column))
    except INVALID as error:
        errors.append(ManifestError(f"expected YAML; {' '.join(problem_of(error).split())[:300]}"))
    return items, errors


def _unfolded(value: Any, node: yaml.Node) -> Iterator[_Item]:
    """The objects of a document: one, a plain list of them, or a Kubernetes list."""
    if value is None:
        return
    if isinstance(value, dict) and isinstance(value.get("items"), list):
        nodes = [each for key, each in node.value if key.value == "items"]
        value, node = value["items"], nodes[-1]  # of equal keys the last counts
    if isinstance(value, list):
        for each, its_node in zip(value, node.value, strict=True):
            yield _Item(each, its_node)
        return
    yield _Item(value, node)


def _shape_error(item: _Item) -> ManifestError | None:
    if not isinstance(item.value, dict):
        return ManifestError("expected an object", item.line)
    if not isinstance(item.value.get("kind"), str):
        return ManifestError("kind: expected the kind of an object", item.line, field="kind")
    for field in ("replicas", "parallelism"):
        spec = item.value.get("spec")
        number = spec.get(field) if isinstance(spec, dict) else None
        if isinstance(number, int) and number > MAX_PODS:
            path = f"spec.{field}"
            text = f"{path}: {number} (expected at most {MAX_PODS:,})"
            return ManifestError(text, line_of(item.node, path), field=path)
    return None


def _name(value: dict[str, Any]) -> str:
    meta = value["metadata"]
    name, namespace = meta.get("name") or meta.get("generateName"), meta.get("namespace")
    return f"{namespace}/{name}" if namespace else str(name)


def _located(invalid: InvalidManifest | InvalidObject, item: _Item) -> ManifestError:
    """The error with the line of its field; fields of pods are looked for in the pod template."""
    cause = invalid if isinstance(invalid, InvalidObject) else invalid.__cause__
    text = str(invalid)
    match = _FIELD.match(text)
    field = match[1] if match else ""
    if isinstance(cause, InvalidObject):
        field = cause.field
    line = line_of(item.node, _prefix(item.value, field) + field) if field else item.line
    return ManifestError(text, line, field=field)


def _prefix(value: dict[str, Any], field: str) -> str:
    """The first of `_TEMPLATES` that has the field of the spec."""
    name = field.removeprefix("spec.").partition(".")[0].partition("[")[0]
    for prefix in _TEMPLATES if field.startswith("spec.") else ():
        found: Any = value
        for step in (*prefix.split(".")[:-1], "spec"):
            found = found.get(step) if isinstance(found, dict) else None
        if isinstance(found, dict) and name in found:
            return prefix
    return ""
