"""The plugins and arguments that the predicates and the priorities of a Policy turn into."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from stowage.api.config.errors import ConfigError
from stowage.api.config.legacy_algorithms import PREDICATES, PRIORITIES, SERVICES_ONLY
from stowage.api.config.policy_types import PredicatePolicy, PriorityArgument, PriorityPolicy
from stowage.api.config.types import INT32_MAX
from stowage.api.decoding.suggestion import did_you_mean

NODE_LABEL = "NodeLabel"
SERVICE_AFFINITY = "ServiceAffinity"
_RATIO = "RequestedToCapacityRatioPriority"
_NEEDED = {"CheckNodeLabelPresence": "labelsPresence", "CheckServiceAffinity": "serviceAffinity"}
"""Predicates that are registered with an argument only."""


class PolicyPart:
    """Plugins with arguments.

    Args:
        errors: Receives the errors.

    Attributes:
        arguments: Arguments by plugin.
        origins: (plugin, argument) -> the field of the Policy.
    """

    def __init__(self, errors: list[ConfigError]) -> None:
        self._errors = errors
        self._first: dict[str, str] = {}
        self.arguments: dict[str, dict[str, Any]] = {}
        self.origins: dict[tuple[str, str], str] = {}

    def wrong(self, path: str, value: object, expectation: str) -> None:
        """Record an error, unless the field could not be decoded."""
        if not any(path.startswith(error.path) for error in self._errors):
            self._errors.append(ConfigError(path, value, expectation))

    def _list(self, plugin: str, argument: str, path: str, *labels: str) -> None:
        """Add labels to an argument that is a list."""
        known = self.arguments.setdefault(plugin, {}).setdefault(argument, [])
        for index, label in enumerate(labels):
            place = path if path.endswith(".label") else f"{path}[{index}]"
            self.origins[plugin, f"{argument}[{len(known)}]"] = place
            known.append(label)

    def _is_new(self, path: str, name: str) -> bool:
        """Whether no entry before has this name; records an error if one has."""
        if not name:
            self.wrong(f"{path}.name", name, "a name")
        elif name in self._first:
            self.wrong(f"{path}.name", name, f"one entry only, {self._first[name]} has this name")
        return bool(name) and self._first.setdefault(name, path) == path

    def _has_one(self, path: str, argument: msgspec.Struct) -> bool:
        """Whether exactly one field of an argument is given; records an error otherwise."""
        fields = msgspec.structs.fields(argument)
        given = [field for field in fields if getattr(argument, field.name) is not None]
        if len(given) != 1:
            names = ", ".join(field.encode_name for field in fields)
            shown = [field.encode_name for field in given]
            self.wrong(f"{path}.argument", shown, f"exactly one of {names}")
        return len(given) == 1

    def _unknown(self, path: str, name: str, what: str, known: Iterable[str]) -> None:
        expectation = f"a {what} of kube-scheduler 1.12{did_you_mean(name, known)}"
        self.wrong(f"{path}.name", name, expectation)


class PolicyFilters(PolicyPart):
    """The plugins of predicates.

    Attributes:
        plugins: The names of the plugins.
    """

    def __init__(self, errors: list[ConfigError]) -> None:
        super().__init__(errors)
        self.plugins: set[str] = set()

    def add_known(self, names: Iterable[str]) -> None:
        """Add predicates that need no argument."""
        self.plugins.update(plugin for name in names for plugin in PREDICATES[name])

    def add(self, path: str, predicate: PredicatePolicy) -> None:
        """Add a predicate of a Policy."""
        name, argument = predicate.name, predicate.argument
        if not self._is_new(path, name):
            return
        if argument is None:
            if name in _NEEDED:
                self.wrong(f"{path}.argument", None, _NEEDED[name])
            elif name in PREDICATES:
                self.add_known((name,))
            else:
                self._unknown(path, name, "predicate", PREDICATES)
        elif self._has_one(path, argument):
            if (affinity := argument.service_affinity) is not None:
                self.plugins.add(SERVICE_AFFINITY)
                place = f"{path}.argument.serviceAffinity.labels"
                self._list(SERVICE_AFFINITY, "affinityLabels", place, *affinity.labels)
            if (presence := argument.labels_presence) is not None:
                self.plugins.add(NODE_LABEL)
                which = "presentLabels" if presence.presence else "absentLabels"
                place = f"{path}.argument.labelsPresence.labels"
                self._list(NODE_LABEL, which, place, *presence.labels)


class PolicyScores(PolicyPart):
    """The plugins of priorities.

    Attributes:
        weights: Weights by plugin.
    """

    def __init__(self, errors: list[ConfigError]) -> None:
        super().__init__(errors)
        self.weights: dict[str, int] = {}
        self._each: dict[str, int] = {}
        self._by: dict[str, str] = {}

    def add(self, path: str, priority: PriorityPolicy) -> None:
        """Add a priority of a Policy."""
        name, weight = priority.name, priority.weight
        if not self._is_new(path, name):
            return
        if not 1 <= weight <= INT32_MAX:
            self.wrong(f"{path}.weight", weight, f"1 to {INT32_MAX}")
        elif priority.argument is not None:
            if self._has_one(path, priority.argument):
                self._add_with_argument(path, weight, priority.argument)
        elif name in PRIORITIES:
            self._add_alone(path, PRIORITIES[name], weight)
            if name == SERVICES_ONLY:
                self.arguments[PRIORITIES[name]] = {"servicesOnly": True}
        else:
            self._unknown(path, name, "priority", PRIORITIES)

    def _add_with_argument(self, path: str, weight: int, argument: PriorityArgument) -> None:
        if (spread := argument.service_anti_affinity) is not None:
            self._add_to_sum(path, SERVICE_AFFINITY, weight)
            place = f"{path}.argument.serviceAntiAffinity.label"
            self._list(SERVICE_AFFINITY, "antiAffinityLabelsPreference", place, spread.label)
        if (preference := argument.label_preference) is not None:
            self._add_to_sum(path, NODE_LABEL, weight)
            which = "present" if preference.presence else "absent"
            place = f"{path}.argument.labelPreference.label"
            self._list(NODE_LABEL, f"{which}LabelsPreference", place, preference.label)
        if (ratio := argument.requested_to_capacity_ratio_arguments) is not None:
            self._add_alone(path, _RATIO, weight)
            self.arguments[_RATIO] = {"shape": [_plain(point) for point in ratio.shape]}
            place = f"{path}.argument.requestedToCapacityRatioArguments.shape"
            self.origins[_RATIO, "shape"] = place

    def _add_alone(self, path: str, plugin: str, weight: int) -> None:
        """Add a plugin that is one priority only."""
        if plugin in self._by:
            expectation = f"one priority only, as {self._by[plugin]} is the same plugin"
            self.wrong(f"{path}.name", plugin, expectation)
        self._by.setdefault(plugin, path)
        self.weights[plugin] = weight

    def _add_to_sum(self, path: str, plugin: str, weight: int) -> None:
        """Add a priority to a plugin that scores their mean: its weight is the sum."""
        first = self._each.setdefault(plugin, weight)
        by = self._by.setdefault(plugin, path)
        if weight != first:
            expectation = f"{first} as that of {by}: both are the plugin {plugin}"
            self.wrong(f"{path}.weight", weight, expectation)
        self.weights[plugin] = self.weights.get(plugin, 0) + weight


def _plain(value: msgspec.Struct) -> Mapping[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(value)
    return plain
