"""Validation of the counts of pods by selector and by term, step by step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from stowage.state.arrays import Int64Array
from stowage.state.cluster_state import ClusterState
from stowage.state.pods.affinity_terms import AffinityTerm
from stowage.state.pods.pod_class import PodClass
from stowage.state.pods.pod_counts import PodCounts
from stowage.state.pods.pod_index import PodQuery
from stowage.state.pods.pod_info import PodInfo, TermKind
from stowage.state.pods.term_counts import TermCounts
from stowage.state.violation import expect

_ROWS_AT_ONCE = 32


def pod_count_steps(state: ClusterState) -> Iterator[None]:
    """Recount the pods of each selector and each term, and those of all label groups.

    Raises:
        InvariantViolation: A count differs from the recount.
    """
    for query in tuple(state.pods.kept_counts()):
        yield from _query_steps(state, query)
    for which in TermKind:
        for term in tuple(existing.term for existing in state.pods.existing_terms(which)):
            yield from _term_steps(state, which, term)
    expect("pods of label groups", len(state.placed), int(state.pods.groups.placed().numbers.sum()))


def check_terms_of_row(state: ClusterState, row: int) -> None:
    """Compare the counts of the terms that pods of a row have.

    Raises:
        InvariantViolation: A count differs from the recount.
    """
    classes = [pod.pod_class for pod in state.placed.on_row(row)]
    having = [pod_class for pod_class in classes if pod_class.has_affinity_terms]
    for which in TermKind if having else ():
        terms = (term for pod_class in having for term in pod_class.terms[which])
        for term, expected in Counter(terms).items():
            existing = state.pods.existing_term(which, term)
            found = 0 if existing is None else existing.counts.on_row(row)
            _expect_count(f"pods with {which.value} {term}", row, expected, found)


def check_groups_of_row(state: ClusterState, row: int) -> None:
    """Compare the numbers of pods of label groups on a row.

    Raises:
        InvariantViolation: A number differs from the recount.
    """
    groups, columns = state.pods.groups, state.pods.groups.placed()
    found = [groups.get(pod.pod_class, pod.terminating) for pod in state.placed.on_row(row)]
    for group, expected in Counter(found).items():
        number = 0 if group is None else group.num_on_row(row)
        where = f"label group {None if group is None else group.namespaced_labels} on row {row}"
        expect(f"pods of {where}", expected, number)
        if group is not None:
            entry = group.entries[row]
            place = int(columns.slots[entry]), int(columns.rows[entry])
            expect(f"entry of {where}", (group.slot, row), place)


def _query_steps(state: ClusterState, query: PodQuery) -> Iterator[None]:
    subject = f"pods matching {query.selector} in {query.namespaces}"
    # The labels of a class never change, so this holds from one step to the next.
    selected: dict[PodClass, bool] = {}
    for first in range(0, state.columns.num_rows, _ROWS_AT_ONCE):
        counts = state.pods.kept_counts().get(query)
        if counts is None:
            return
        per_node = counts.per_node[first : first + _ROWS_AT_ONCE].tolist()
        for row, found in enumerate(per_node, first):
            expected = sum(_counts(query, pod, selected) for pod in state.placed.on_row(row))
            _expect_count(subject, row, expected, found)
        yield
    counts = state.pods.kept_counts().get(query)
    if counts is not None:
        _check_sums(state, counts, subject)
    yield


def _counts(query: PodQuery, pod: PodInfo, selected: dict[PodClass, bool]) -> bool:
    """Whether a pod counts; remembers by class whether the selector matches."""
    pod_class = pod.pod_class
    is_selected = selected.get(pod_class)
    if is_selected is None:
        is_in_namespace = query.namespaces is None or pod_class.namespace in query.namespaces
        is_selected = is_in_namespace and query.selector.matches(pod_class.labels)
        selected[pod_class] = is_selected
    return is_selected and not (query.skip_terminating and pod.terminating)


def _term_steps(state: ClusterState, which: TermKind, term: AffinityTerm) -> Iterator[None]:
    """Check that the rows with a count have such pods; `check_terms_of_row` checks the others."""
    subject = f"pods with {which.value} {term}"
    existing = state.pods.existing_term(which, term)
    if existing is None:
        return
    expect(f"{subject} exist", True, existing.counts.total > 0)
    _check_sums(state, existing.counts, subject)
    rows = np.flatnonzero(existing.counts.per_node).tolist()
    yield
    for first in range(0, len(rows), _ROWS_AT_ONCE):
        existing = state.pods.existing_term(which, term)
        if existing is None:
            return
        for row in rows[first : first + _ROWS_AT_ONCE]:
            pods = state.placed.on_row(row)
            expected = sum(pod.pod_class.terms[which].count(term) for pod in pods)
            _expect_count(subject, row, expected, existing.counts.on_row(row))
        yield


def _expect_count(subject: str, row: int, expected: int, found: int) -> None:
    if expected != found:
        expect(f"{subject} on row {row}", expected, found)


def _check_sums(state: ClusterState, counts: PodCounts | TermCounts, subject: str) -> None:
    """Compare the sums over all rows and per domain with those of the counts per row."""
    per_node = counts.per_node
    expect(f"{subject} in all", int(per_node.sum()), counts.total)
    for key in counts.known_domains():
        column = state.columns.labels.column(key)
        has_label = column.codes >= 0
        per_domain: Int64Array = np.zeros(column.num_values, dtype=np.int64)
        np.add.at(per_domain, column.codes[has_label], per_node[has_label])
        expect(f"{subject} per {key}", per_domain.tolist(), counts.per_domain(key).tolist())
