"""Compiled node selectors and preferred terms (``component-helpers/nodeaffinity`` v1.36)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import attrgetter

import msgspec

from stowage.api.decoding.errors import SelectorError
from stowage.api.objects.node import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from stowage.api.objects.pod import PodSpec, PreferredSchedulingTerm
from stowage.api.values.selectors import (
    Operator,
    Requirement,
    Selector,
    joined_errors,
    selector_from_labels,
    valid_requirement,
)

NODE_NAME_FIELD = "metadata.name"
"""The only node field that ``matchFields`` supports; others count as empty."""

_KEY = attrgetter("key")
_OPERATORS = {
    operator.value: operator
    for operator in (
        Operator.IN,
        Operator.NOT_IN,
        Operator.EXISTS,
        Operator.DOES_NOT_EXIST,
        Operator.GT,
        Operator.LT,
    )
}


class NodeTerm(msgspec.Struct, frozen=True, gc=False):
    """A node selector term: label and field requirements that must all hold.

    A term with an `error` is invalid and matches nothing.
    """

    labels: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()
    error: str = ""

    def matches(self, labels: Mapping[str, str], node_name: str) -> bool:
        """Whether a node with these labels and this name matches."""
        if self.error:
            return False
        return all(each.matches_value(labels.get(each.key)) for each in self.labels) and (
            self.matches_name(node_name)
        )

    def matches_name(self, node_name: str) -> bool:
        """Whether the field requirements hold; they do for a node without a name, as in v1.36."""
        return not node_name or all(
            each.matches_value(node_name if each.key == NODE_NAME_FIELD else "")
            for each in self.fields
        )


class NodeTerms(msgspec.Struct, frozen=True, gc=False):
    """Terms of which one must match; none at all matches nothing (``LazyErrorNodeSelector``)."""

    terms: tuple[NodeTerm, ...] = ()

    @property
    def error(self) -> str:
        """The errors of invalid terms; empty if there are none."""
        errors = [term.error for term in self.terms if term.error]
        return joined_errors(errors) if errors else ""

    def matches(self, labels: Mapping[str, str], node_name: str) -> bool:
        """Whether some term matches a node.

        Raises:
            SelectorError: No term matches, and some are invalid.
        """
        if any(term.matches(labels, node_name) for term in self.terms):
            return True
        if self.error:
            raise SelectorError(self.error)
        return False


class RequiredNodeAffinity(msgspec.Struct, frozen=True, gc=False):
    """``nodeSelector`` and required node affinity of a pod; None requires nothing."""

    node_selector: Selector | None = None
    terms: NodeTerms | None = None

    def matches(self, labels: Mapping[str, str], node_name: str) -> bool:
        """Whether a node matches.

        Raises:
            SelectorError: No term of the affinity matches, and some are invalid.
        """
        if self.node_selector is not None and not self.node_selector.matches(labels):
            return False
        return self.terms is None or self.terms.matches(labels, node_name)


_NO_REQUIREMENTS = RequiredNodeAffinity()


class PreferredTerm(msgspec.Struct, frozen=True, gc=False):
    """A term that adds `weight` to the nodes it matches."""

    weight: int
    term: NodeTerm


def compile_node_selector(selector: NodeSelector, path: str = "") -> NodeTerms:
    """Compile a node selector; invalid terms are kept with their error, empty ones dropped."""
    prefix = f"{path}." if path else ""
    return NodeTerms(
        tuple(
            _compile_term(term, f"{prefix}nodeSelectorTerms[{index}]")
            for index, term in enumerate(selector.node_selector_terms)
            if not _is_empty(term)
        )
    )


def required_node_affinity(spec: PodSpec) -> RequiredNodeAffinity:
    """Compile a pod's ``nodeSelector`` and required node affinity."""
    if spec.affinity is None and not spec.node_selector:
        return _NO_REQUIREMENTS
    node_affinity = spec.affinity.node_affinity if spec.affinity else None
    required = (
        node_affinity.required_during_scheduling_ignored_during_execution if node_affinity else None
    )
    return RequiredNodeAffinity(
        selector_from_labels(spec.node_selector) if spec.node_selector else None,
        compile_node_selector(required) if required else None,
    )


def compile_preferred_terms(terms: Iterable[PreferredSchedulingTerm]) -> tuple[PreferredTerm, ...]:
    """Compile preferred terms; empty ones and those of weight 0 are dropped.

    Raises:
        SelectorError: Another term is invalid.
    """
    compiled = tuple(
        PreferredTerm(term.weight, _compile_term(term.preference, f"[{index}]"))
        for index, term in enumerate(terms)
        if term.weight and not _is_empty(term.preference)
    )
    if errors := [each.term.error for each in compiled if each.term.error]:
        raise SelectorError(joined_errors(errors))
    return compiled


def _is_empty(term: NodeSelectorTerm) -> bool:
    return not term.match_expressions and not term.match_fields


def _compile_term(term: NodeSelectorTerm, path: str) -> NodeTerm:
    errors: list[str] = []
    labels = _compile_all(term.match_expressions, path, errors)
    fields = _compile_fields(term.match_fields, path, errors) if term.match_fields else []
    if errors:
        return NodeTerm(error=joined_errors(errors))
    return NodeTerm(_distinct(labels), _distinct(fields))


def _distinct(requirements: list[Requirement]) -> tuple[Requirement, ...]:
    """The requirements in order, each once."""
    if len(requirements) < 2:
        return tuple(requirements)
    if len({each.key for each in requirements}) == len(requirements):
        # The keys alone decide the order, in half the time; a pod may have thousands of terms.
        return tuple(sorted(requirements, key=_KEY))
    return tuple(sorted(set(requirements)))


def _compile_all(
    expressions: Iterable[NodeSelectorRequirement], path: str, errors: list[str]
) -> list[Requirement]:
    requirements = []
    for index, expression in enumerate(expressions):
        operator = _OPERATORS.get(expression.operator)
        if operator is None:
            errors.append(
                f"{path}.matchExpressions[{index}].operator: Unsupported value: "
                f'"{expression.operator}": supported values: '
                '"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"'
            )
            continue
        try:
            requirements.append(valid_requirement(expression.key, operator, expression.values))
        except SelectorError:
            # A pod may have thousands of requirements; only those that are invalid need a path.
            where = f"{path}.matchExpressions[{index}]"
            try:
                valid_requirement(expression.key, operator, expression.values, where)
            except SelectorError as error:
                errors.append(str(error))
    return requirements


def _compile_fields(
    expressions: Iterable[NodeSelectorRequirement], path: str, errors: list[str]
) -> list[Requirement]:
    requirements = []
    for index, expression in enumerate(expressions):
        where = f"{path}.matchFields[{index}]"
        if expression.operator not in ("In", "NotIn"):
            errors.append(
                f'{where}.operator: Unsupported value: "{expression.operator}": '
                'supported values: "In", "NotIn"'
            )
        elif len(expression.values) != 1:
            shown = "[" + ",".join(f'"{value}"' for value in expression.values) + "]"
            errors.append(f"{where}.values: Invalid value: {shown}: must have one element")
        else:
            operator = Operator(expression.operator)
            requirements.append(Requirement(expression.key, operator, expression.values))
    return requirements
