"""Turns a Policy, or an algorithm provider, into an equal KubeSchedulerConfiguration.

As in kube-scheduler 1.12: predicates that are not listed do not run, except for the mandatory ones;
half of the nodes are searched; of the best nodes the next one in turn is taken. Filter plugins of
what 1.12 does not know stay. Several predicates or priorities may be one plugin, since 1.17.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeGuard

import msgspec

from stowage.api.config.errors import ConfigError, InvalidConfiguration
from stowage.api.config.legacy_algorithms import (
    DEFAULT_FILTERS,
    DEFAULT_PREDICATES,
    DEFAULT_PROVIDER,
    EQUAL,
    LATER_FILTERS,
    MANDATORY_PREDICATES,
    PERCENTAGE_OF_NODES_TO_SCORE,
    PRE_SCORE,
    PREDICATES,
    PROVIDERS,
)
from stowage.api.config.policy_extenders import converted_extenders
from stowage.api.config.policy_parts import PolicyFilters, PolicyScores
from stowage.api.config.policy_types import POLICY_API_VERSION, POLICY_KIND, Policy, PriorityPolicy
from stowage.api.config.types import API_VERSION, DEFAULT_SCHEDULER_NAME, KIND
from stowage.api.decoding.strict_decoding import decode_struct

_ALL = [{"name": "*"}]
_INTER_POD_AFFINITY = "InterPodAffinityPriority"
_MAX_SYMMETRIC_WEIGHT = 100


class ConvertedPolicy(msgspec.Struct, frozen=True):
    """A configuration that is equal to a Policy.

    Attributes:
        builtins: A KubeSchedulerConfiguration in the shape of its file.
        origins: Field of the configuration -> the field of the Policy that it comes from.
    """

    builtins: dict[str, Any]
    origins: Mapping[str, str]

    def at_origin(self, error: ConfigError) -> ConfigError:
        """An error of the configuration, with the field of the Policy."""
        for field in sorted(self.origins, key=len, reverse=True):
            if error.path.startswith(field):
                path = f"{self.origins[field]}{error.path.removeprefix(field)}"
                return ConfigError(path, error.value, error.expectation)
        return error


def is_policy(builtins: object) -> TypeGuard[Mapping[str, Any]]:
    """Whether a document says that it is a Policy."""
    return isinstance(builtins, Mapping) and builtins.get("kind") == POLICY_KIND


def convert_policy(builtins: object) -> ConvertedPolicy:
    """Convert a Policy.

    Args:
        builtins: The Policy as a parsed YAML or JSON document.

    Raises:
        InvalidConfiguration: It lists every unknown field or name, wrong type and value out of
            range.
    """
    errors: list[ConfigError] = []
    policy = decode_struct(builtins, Policy, "", errors)
    if not errors:
        for field, found, wanted in (
            ("apiVersion", policy.api_version, POLICY_API_VERSION),
            ("kind", policy.kind, POLICY_KIND),
        ):
            if found != wanted:
                errors.append(ConfigError(field, found, wanted))
    return _convert(policy, errors)


def convert_provider(name: str) -> ConvertedPolicy:
    """Convert an algorithm provider of kube-scheduler 1.12.

    Raises:
        KeyError: There is no such provider.
    """
    weights = PROVIDERS[name]
    return _convert(Policy(priorities=_listed(weights)), [])


def _listed(weights: Mapping[str, int]) -> tuple[PriorityPolicy, ...]:
    return tuple(PriorityPolicy(name, weight) for name, weight in weights.items())


def _convert(policy: Policy, errors: list[ConfigError]) -> ConvertedPolicy:
    filters, scores = PolicyFilters(errors), PolicyScores(errors)
    if policy.predicates is None:
        filters.add_known(DEFAULT_PREDICATES)
    filters.add_known(MANDATORY_PREDICATES)
    for index, predicate in enumerate(policy.predicates or ()):
        filters.add(f"predicates[{index}]", predicate)
    priorities = policy.priorities
    if priorities is None:
        priorities = _listed(PROVIDERS[DEFAULT_PROVIDER])
    for index, priority in enumerate(priorities or (PriorityPolicy(EQUAL, 1),)):
        scores.add(f"priorities[{index}]", priority)
    weight = policy.hard_pod_affinity_symmetric_weight
    if not 0 <= weight <= _MAX_SYMMETRIC_WEIGHT:
        errors.append(ConfigError("hardPodAffinitySymmetricWeight", weight, "0 to 100"))
    if weight and _INTER_POD_AFFINITY in scores.weights:
        scores.arguments[_INTER_POD_AFFINITY] = {"hardPodAffinityWeight": weight}
    extenders = converted_extenders(policy.extenders, errors)
    if errors:
        raise InvalidConfiguration(errors)
    return _configuration(policy, filters, scores, extenders)


def _configuration(
    policy: Policy, filters: PolicyFilters, scores: PolicyScores, extenders: list[dict[str, Any]]
) -> ConvertedPolicy:
    arguments: dict[str, dict[str, Any]] = {}
    origins: dict[str, str] = {}
    for part in (filters, scores):
        for name, args in part.arguments.items():
            arguments.setdefault(name, {}).update(args)
    places = {name: index for index, name in enumerate(arguments)}
    for part in (filters, scores):
        for (name, field), origin in part.origins.items():
            origins[f"profiles[0].pluginConfig[{places[name]}].args.{field}"] = origin
    profile: dict[str, Any] = {
        "schedulerName": DEFAULT_SCHEDULER_NAME,
        "tieBreaking": {"type": "RoundRobin"},
        "plugins": _plugins(filters, scores),
    }
    if policy.always_check_all_predicates:
        profile["alwaysCheckAllPredicates"] = True
    if arguments:
        profile["pluginConfig"] = [{"name": name, "args": arguments[name]} for name in arguments]
    builtins: dict[str, Any] = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "percentageOfNodesToScore": PERCENTAGE_OF_NODES_TO_SCORE,
        "profiles": [profile],
    }
    if extenders:
        builtins["extenders"] = extenders
    return ConvertedPolicy(builtins, origins)


def _plugins(filters: PolicyFilters, scores: PolicyScores) -> dict[str, Any]:
    """The plugin sets: Filter plugins in the order of 1.12, and no Score plugins but the listed."""
    known = dict.fromkeys(name for names in PREDICATES.values() for name in names)
    enabled = [name for name in known if name in filters.plugins]
    left_out = [name for name in DEFAULT_FILTERS if name not in filters.plugins]
    prepared = [name for name in PRE_SCORE if name in scores.weights]
    return {
        "multiPoint": {"disabled": _names(left_out)},
        "filter": {"disabled": _ALL, "enabled": _names([*enabled, *LATER_FILTERS])},
        "preScore": {"disabled": _ALL} | ({"enabled": _names(prepared)} if prepared else {}),
        "score": {
            "disabled": _ALL,
            "enabled": [
                {"name": name, "weight": weight} for name, weight in scores.weights.items()
            ],
        },
    }


def _names(names: Iterable[str]) -> list[dict[str, str]]:
    return [{"name": name} for name in names]
