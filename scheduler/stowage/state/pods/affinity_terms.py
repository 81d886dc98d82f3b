"""Compiled pod (anti)affinity terms (``fwk.AffinityTerm`` of v1.36)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

import msgspec

from stowage.api.decoding.errors import SelectorError
from stowage.api.objects.pod import Affinity, PodAffinity, PodAffinityTerm
from stowage.api.values.selectors import Selector, compile_label_selector


class TermKind(Enum):
    """The four lists of terms of a pod."""

    REQUIRED_AFFINITY = "podAffinity.requiredDuringSchedulingIgnoredDuringExecution"
    REQUIRED_ANTI_AFFINITY = "podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution"
    PREFERRED_AFFINITY = "podAffinity.preferredDuringSchedulingIgnoredDuringExecution"
    PREFERRED_ANTI_AFFINITY = "podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution"

    # Members are dictionary keys on the path of every pod; Enum's own hash is slow.
    __hash__ = object.__hash__


class AffinityTerm(msgspec.Struct, frozen=True, gc=False, cache_hash=True):
    """Which pods a term matches, and in which topology domains.

    Attributes:
        namespaces: The namespaces that the term names, or the pod's own if it names none.
        namespace_selector: Matches further namespaces by their labels; none if absent.
        selector: Matches pods within those namespaces.
        topology_key: The node label whose values are the domains.
        weight: 1..100 for preferred terms, 0 for required ones.
    """

    namespaces: frozenset[str]
    namespace_selector: Selector
    selector: Selector
    topology_key: str
    weight: int = 0

    def matches(
        self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]
    ) -> bool:
        """Whether the term matches a pod (``AffinityTerm.Matches``)."""
        if namespace not in self.namespaces and not self.namespace_selector.matches(
            namespace_labels
        ):
            return False
        return self.selector.matches(labels)


class InvalidTerm(ValueError):  # noqa: N818 - it names the finding
    """A term with an invalid selector; `field` is its path within ``spec.affinity``."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(field, message)
        self.field = field
        self.message = message


AffinityTerms = tuple[AffinityTerm, ...]
_NO_TERMS: dict[TermKind, AffinityTerms] = dict.fromkeys(TermKind, ())


def compile_affinity_terms(
    affinity: Affinity | None, namespace: str
) -> dict[TermKind, AffinityTerms]:
    """Compile all pod (anti)affinity terms of a pod of `namespace`.

    ``matchLabelKeys`` and ``mismatchLabelKeys`` are not read: the API server merges them into the
    selector when the pod is created.

    Raises:
        InvalidTerm: A selector has an invalid operator, key or value.
    """
    if affinity is None:
        return _NO_TERMS
    near, far = affinity.pod_affinity, affinity.pod_anti_affinity
    return {
        TermKind.REQUIRED_AFFINITY: _required(near, namespace, TermKind.REQUIRED_AFFINITY),
        TermKind.REQUIRED_ANTI_AFFINITY: _required(far, namespace, TermKind.REQUIRED_ANTI_AFFINITY),
        TermKind.PREFERRED_AFFINITY: _preferred(near, namespace, TermKind.PREFERRED_AFFINITY),
        TermKind.PREFERRED_ANTI_AFFINITY: _preferred(
            far, namespace, TermKind.PREFERRED_ANTI_AFFINITY
        ),
    }


def _required(rules: PodAffinity | None, namespace: str, kind: TermKind) -> AffinityTerms:
    if rules is None:
        return ()
    return tuple(
        _compile(term, namespace, 0, f"{kind.value}[{index}]")
        for index, term in enumerate(rules.required_during_scheduling_ignored_during_execution)
    )


def _preferred(rules: PodAffinity | None, namespace: str, kind: TermKind) -> AffinityTerms:
    if rules is None:
        return ()
    return tuple(
        _compile(each.pod_affinity_term, namespace, each.weight, f"{kind.value}[{index}]")
        for index, each in enumerate(rules.preferred_during_scheduling_ignored_during_execution)
    )


def _compile(term: PodAffinityTerm, namespace: str, weight: int, path: str) -> AffinityTerm:
    own = not term.namespaces and term.namespace_selector is None
    field = "labelSelector"
    try:
        selector = compile_label_selector(term.label_selector)
        field = "namespaceSelector"
        namespace_selector = compile_label_selector(term.namespace_selector)
    except SelectorError as error:
        raise InvalidTerm(f"{path}.{field}", str(error)) from error
    return AffinityTerm(
        namespaces=frozenset((namespace,) if own else term.namespaces),
        namespace_selector=namespace_selector,
        selector=selector,
        topology_key=term.topology_key,
        weight=weight,
    )
