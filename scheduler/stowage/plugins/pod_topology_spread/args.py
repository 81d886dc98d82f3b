"""Arguments of PodTopologySpread."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from stowage.api.config.errors import ConfigError
from stowage.api.config.types import INT32_MAX
from stowage.api.objects.meta import LabelSelector
from stowage.api.objects.pod import TopologySpreadConstraint
from stowage.api.values.selectors import key_error

SYSTEM = "System"
LIST = "List"
DO_NOT_SCHEDULE = "DoNotSchedule"
SCHEDULE_ANYWAY = "ScheduleAnyway"
HOSTNAME_KEY = "kubernetes.io/hostname"
ZONE_KEY = "topology.kubernetes.io/zone"


class DefaultConstraint(msgspec.Struct, frozen=True, rename="camel"):
    """One entry of ``defaultConstraints``; its selector is derived from each pod's workloads."""

    max_skew: int = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] = ()

    def as_spread_constraint(self) -> TopologySpreadConstraint:
        """The constraint as a pod's spec would state it, without selector and label keys."""
        return TopologySpreadConstraint(
            max_skew=self.max_skew,
            topology_key=self.topology_key,
            when_unsatisfiable=self.when_unsatisfiable,
            min_domains=self.min_domains,
            node_affinity_policy=self.node_affinity_policy,
            node_taints_policy=self.node_taints_policy,
        )


SYSTEM_DEFAULT_CONSTRAINTS = (
    DefaultConstraint(max_skew=3, topology_key=HOSTNAME_KEY, when_unsatisfiable=SCHEDULE_ANYWAY),
    DefaultConstraint(max_skew=5, topology_key=ZONE_KEY, when_unsatisfiable=SCHEDULE_ANYWAY),
)


class PodTopologySpreadArgs(msgspec.Struct, frozen=True, rename="camel"):
    """``PodTopologySpreadArgs`` of kubescheduler.config.k8s.io/v1.

    Attributes:
        default_constraints: For pods without constraints of their own; only with ``List``.
        defaulting_type: ``System`` (hostname with skew 3 and zone with skew 5, both
            ScheduleAnyway) or ``List`` (`default_constraints`); empty means ``System``.
    """

    default_constraints: tuple[DefaultConstraint, ...] = ()
    defaulting_type: str = SYSTEM

    @property
    def is_system(self) -> bool:
        """Whether the built-in default constraints apply."""
        return self.defaulting_type in ("", SYSTEM)

    @property
    def effective_constraints(self) -> tuple[DefaultConstraint, ...]:
        """The default constraints that apply."""
        return SYSTEM_DEFAULT_CONSTRAINTS if self.is_system else self.default_constraints

    def validate(self) -> Iterator[ConfigError]:
        """Yield an error for each invalid value (``ValidatePodTopologySpreadArgs`` of v1.36)."""
        if not self.is_system and self.defaulting_type != LIST:
            yield ConfigError("defaultingType", self.defaulting_type, f'"{SYSTEM}" or "{LIST}"')
        elif self.is_system and self.default_constraints:
            expectation = f'"{LIST}" where defaultConstraints are not empty'
            yield ConfigError("defaultingType", SYSTEM, expectation)
        seen: set[tuple[str, str]] = set()
        for index, constraint in enumerate(self.default_constraints):
            path = f"defaultConstraints[{index}]"
            for error in _constraint_errors(constraint):
                yield error.under(path)
            pair = (constraint.topology_key, constraint.when_unsatisfiable)
            if pair in seen:
                yield ConfigError(
                    path, pair, "a topologyKey and whenUnsatisfiable that no other entry has"
                )
            seen.add(pair)


def _constraint_errors(constraint: DefaultConstraint) -> Iterator[ConfigError]:
    if constraint.max_skew <= 0:
        yield ConfigError("maxSkew", constraint.max_skew, "a whole number greater than 0")
    if constraint.max_skew > INT32_MAX:
        yield ConfigError("maxSkew", constraint.max_skew, f"at most {INT32_MAX}")
    key = constraint.topology_key
    if problem := key_error(key):
        yield ConfigError("topologyKey", key, f"a label key; {problem}")
    action = constraint.when_unsatisfiable
    if action not in (DO_NOT_SCHEDULE, SCHEDULE_ANYWAY):
        expectation = f'"{DO_NOT_SCHEDULE}" or "{SCHEDULE_ANYWAY}"'
        yield ConfigError("whenUnsatisfiable", action, expectation)
    if constraint.label_selector is not None:
        yield ConfigError(
            "labelSelector",
            msgspec.to_builtins(constraint.label_selector),
            "none, for the selector is found for each pod",
        )
