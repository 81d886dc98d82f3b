"""The record of a scheduling attempt: what was decided, when, and by which scores."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TypeAlias

import msgspec

#: Raw and normalised scores of some nodes by one plugin.
RawAndNormalized: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]


class _Record(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Base of records; JSON has camelCase names and leaves out what is empty."""


class PluginScore(_Record, frozen=True):
    """The score of a node by one plugin; `weighted` is `normalized` times `weight`."""

    plugin: str
    weight: int
    raw: int
    normalized: int
    weighted: int


class ScoredNode(_Record, frozen=True):
    """A node with its total score and the scores by plugin."""

    node: str
    total: int
    scores: tuple[PluginScore, ...] = ()


class BestNodes(msgspec.Struct, frozen=True):
    """The best nodes of an attempt with their scores, small enough to be kept for each attempt.

    Attributes:
        names: The nodes, the chosen one first, the others by falling total.
        totals: Their total scores.
        weights: Name and weight of the Score plugins, in order; shared by many attempts.
        plain_plugins: The plugins of `plain`.
        plain: ``uint8[plain_plugins, nodes]``: scores that are equal, raw and normalised.
        others: Plugin -> raw and normalised scores; one value if all nodes have the same.
    """

    names: tuple[str, ...]
    totals: tuple[int, ...]
    weights: tuple[tuple[str, int], ...]
    plain_plugins: tuple[str, ...]
    plain: bytes
    others: dict[str, RawAndNormalized]

    def scored_nodes(self) -> tuple[ScoredNode, ...]:
        """The nodes with their scores, as records."""
        columns = [(plugin, weight, *self._column(plugin)) for plugin, weight in self.weights]
        return tuple(
            ScoredNode(
                name,
                total,
                tuple(
                    PluginScore(plugin, weight, raw[index], normal[index], normal[index] * weight)
                    for plugin, weight, raw, normal in columns
                ),
            )
            for index, (name, total) in enumerate(zip(self.names, self.totals, strict=True))
        )

    def _column(self, plugin: str) -> tuple[Sequence[int], Sequence[int]]:
        """Raw and normalised scores of all nodes by one plugin."""
        num_nodes = len(self.names)
        if plugin in self.plain_plugins:
            start = self.plain_plugins.index(plugin) * num_nodes
            scores = self.plain[start : start + num_nodes]
            return scores, scores
        raw, normalized = self.others[plugin]
        return (
            raw if len(raw) == num_nodes else raw * num_nodes,
            normalized if len(normalized) == num_nodes else normalized * num_nodes,
        )


class Decision(_Record, frozen=True):
    """The record of one scheduling attempt.

    Attributes:
        id: Unique; later attempts of a process have a higher number after the hyphen.
        time: When the attempt ended, RFC 3339 in UTC.
        pod: ``namespace/name``.
        uid: The pod's UID.
        scheduler_name: The profile.
        attempt: Number of attempts of this pod, including this one.
        result: ``scheduled``, ``unschedulable`` or ``error``.
        node: The chosen node, if scheduled.
        nominated_node: The node on which preemption makes room, if any.
        message: The reason, if not scheduled.
        reason_counts: Reason -> number of nodes, if not scheduled.
        unschedulable_plugins: The plugins that rejected the pod or a node, if not scheduled.
        evaluated_nodes: Number of nodes that were filtered.
        feasible_nodes: Number of nodes that passed.
        nodes: The best nodes, the chosen one first; empty if no node was scored.
        duration_s: Duration of the scheduling algorithm in seconds.
        configuration: The hash of the configuration; empty if it has none.
        first_fit: Whether the search ended at the first of several feasible nodes, because nothing
            rates nodes.
    """

    id: str
    time: str
    pod: str
    uid: str
    scheduler_name: str
    attempt: int
    result: str
    node: str = ""
    nominated_node: str = ""
    message: str = ""
    reason_counts: dict[str, int] = msgspec.field(default_factory=dict)
    unschedulable_plugins: tuple[str, ...] = ()
    evaluated_nodes: int = 0
    feasible_nodes: int = 0
    nodes: tuple[ScoredNode, ...] = ()
    duration_s: float = 0.0
    configuration: str = ""
    first_fit: bool = False

    @property
    def namespace(self) -> str:
        """The pod's namespace."""
        return self.pod.partition("/")[0]


class InvalidDecisionQuery(ValueError):  # noqa: N818 - it names the finding
    """A parameter of a question about decisions is invalid; the message names it."""


MAX_DECISIONS_OF_A_PAGE = 1_000
RESULTS = ("scheduled", "unschedulable", "error")


class DecisionQuery(msgspec.Struct, frozen=True):
    """Which decisions are wanted; an empty field accepts all.

    Attributes:
        namespace: Namespace of the pod.
        pod: Name of the pod, or ``namespace/name``.
        node: The chosen or nominated node.
        result: One of `RESULTS`.
        limit: At most this many decisions: the newest ones, or with `after` the oldest ones.
        after: Id of the decision after which to begin.
    """

    namespace: str = ""
    pod: str = ""
    node: str = ""
    result: str = ""
    limit: int = 100
    after: str = ""

    @classmethod
    def of(cls, parameters: Mapping[str, str]) -> DecisionQuery:
        """The query of URL parameters.

        Raises:
            InvalidDecisionQuery: A parameter is unknown or has an invalid value.
        """
        unknown = sorted(parameters.keys() - set(cls.__struct_fields__))
        if unknown:
            expected = ", ".join(cls.__struct_fields__)
            raise InvalidDecisionQuery(f"{unknown[0]}: unknown parameter, expected {expected}")
        result = parameters.get("result", "")
        if result not in ("", *RESULTS):
            raise InvalidDecisionQuery(
                f"result: expected {', '.join(RESULTS)}, got {result[:40]!r}"
            )
        limit = parameters.get("limit", "100")
        if not (limit.isascii() and limit.isdigit() and len(limit) < 10):
            limit = "0"
        if not 1 <= int(limit) <= MAX_DECISIONS_OF_A_PAGE:
            got = parameters.get("limit", "")[:40]
            raise InvalidDecisionQuery(
                f"limit: expected 1 to {MAX_DECISIONS_OF_A_PAGE}, got {got!r}"
            )
        return msgspec.convert({**parameters, "limit": int(limit)}, cls)

    def accepts(self, namespace: str, name: str, nodes: Collection[str], result: str) -> bool:
        """Whether the query wants a decision about this pod with these nodes and this result."""
        return (
            self.namespace in ("", namespace)
            and self.pod in ("", name, f"{namespace}/{name}")
            and (not self.node or self.node in nodes)
            and self.result in ("", result)
        )

    def accepts_decision(self, decision: Decision) -> bool:
        """Whether the query wants the decision; `limit` and `after` do not count."""
        namespace, _, name = decision.pod.partition("/")
        nodes = (decision.node, decision.nominated_node)
        return self.accepts(namespace, name, nodes, decision.result)


class DecisionPage(_Record, frozen=True):
    """An answer to a query.

    Attributes:
        decisions: The decisions, oldest first.
        last: The id to continue after, for a query with `after`; empty before the first decision.
    """

    decisions: tuple[Decision, ...] = ()
    last: str = ""
