"""The values of feature gates, and the syntax of ``--feature-gates``."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from stowage.api.config.errors import ConfigError, InvalidConfiguration
from stowage.api.config.feature_gate_table import (
    ALL_ALPHA,
    ALL_BETA,
    DEPENDENCIES,
    KNOWN_GATES,
    FeatureGate,
    Stage,
)
from stowage.api.decoding.suggestion import did_you_mean

FLAG = "--feature-gates"
COMPONENT = "kube"
"""The component whose gates are known; other prefixes are refused."""

GO_BOOLEANS: Mapping[str, bool] = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}
"""The texts that Go's ``strconv.ParseBool`` accepts."""

COMPARISON_GATE = "TaintTolerationComparisonOperators"
"""With it, the operators Lt and Gt of tolerations compare numbers."""

LABEL_KEYS_GATE = "MatchLabelKeysInPodTopologySpread"
"""Without it, ``matchLabelKeys`` of spread constraints do not matter."""

GATES_WITH_EFFECT: frozenset[str] = frozenset(
    {
        "DRAConsumableCapacity",
        "DRADeviceBindingConditions",
        "DRADeviceTaints",
        "DRAExtendedResource",
        "DRAPartitionableDevices",
        "DRAPrioritizedList",
        "DRAResourceClaimDeviceStatus",
        "DRASchedulerFilterTimeout",
        "GangScheduling",
        "GenericWorkload",
        LABEL_KEYS_GATE,
        "NodeDeclaredFeatures",
        "NominatedNodeNameForExpectation",
        "PodLevelResources",
        "SchedulerPopFromBackoffQ",
        "StorageCapacityScoring",
        COMPARISON_GATE,
        "TopologyAwareWorkloadScheduling",
        "VolumeLimitScaling",
        "WorkloadAwarePreemption",
    }
)
"""The gates that are read anywhere; all others are accepted without effect."""

_ALL_OF_A_STAGE = {Stage.ALPHA: ALL_ALPHA, Stage.BETA: ALL_BETA}


class FeatureGates(msgspec.Struct, frozen=True):
    """The values of all feature gates of a process.

    Attributes:
        written: The gates that were set by name, ``AllAlpha`` and ``AllBeta`` among them.
    """

    written: Mapping[str, bool] = {}

    def enabled(self, name: str) -> bool:
        """Whether a gate is on: set by name, by ``AllAlpha`` or ``AllBeta``, or by default.

        Raises:
            KeyError: there is no such gate in kube-scheduler v1.36.
        """
        gate = KNOWN_GATES[name]
        all_of_stage = _ALL_OF_A_STAGE.get(gate.stage, name)
        return self.written.get(name, self.written.get(all_of_stage, gate.default))

    def set_to(self, name: str) -> bool | None:
        """The value that was set by name, or None."""
        return self.written.get(name)

    def values(self) -> Iterator[tuple[FeatureGate, bool]]:
        """Every known gate with its value."""
        for name, gate in KNOWN_GATES.items():
            yield gate, self.enabled(name)

    def without_effect(self) -> tuple[str, ...]:
        """The settings ``NAME=value`` that differ from the default and that nothing reads."""
        return tuple(
            f"{name}={str(value).lower()}"
            for name, value in sorted(self.written.items())
            if value != KNOWN_GATES[name].default and name not in GATES_WITH_EFFECT
        )


DEFAULT_FEATURE_GATES = FeatureGates()


def parse_feature_gates(values: Sequence[str]) -> FeatureGates:
    """The gates that the values of all ``--feature-gates`` flags set; the last one wins.

    The syntax is that of kube-scheduler: ``A=true,kube:B=false``.

    Raises:
        InvalidConfiguration: with kube-scheduler's text for each error.
    """
    pairs = [pair for value in values for pair in value.split(",") if pair]
    errors = list(_prefix_errors(pairs))
    written: dict[str, bool] = {}
    for pair in pairs:
        name, equals, text = pair.rpartition(":")[2].partition("=")
        name, text = name.strip(), text.strip()
        fault = _fault(name, text) if equals else f"missing bool value for {name}"
        if fault:
            errors.append(ConfigError(FLAG, pair, f"NAME=true or NAME=false: {fault}"))
        else:
            written[name] = GO_BOOLEANS[text]
    gates = FeatureGates(written)
    if not errors:
        errors = list(_dependency_errors(gates))
    if errors:
        raise InvalidConfiguration(errors)
    return gates


def _prefix_errors(pairs: Sequence[str]) -> Iterator[ConfigError]:
    prefixes = {pair: pair.partition(":")[0].strip() if ":" in pair else "" for pair in pairs}
    for pair, prefix in prefixes.items():
        if prefix not in ("", COMPONENT):
            yield ConfigError(FLAG, pair, f"no prefix: component not registered: {prefix}")
    if {"", COMPONENT} <= set(prefixes.values()):
        fault = "set kube feature gates with default empty prefix or kube: prefix consistently, "
        yield ConfigError(FLAG, ",".join(pairs), f"one notation: {fault}do not mix use")


def _fault(name: str, text: str) -> str:
    """What is wrong with a setting, in kube-scheduler's words; empty if nothing is."""
    gate = KNOWN_GATES.get(name)
    if gate is None:
        return f"unrecognized feature gate: {name}{did_you_mean(name, KNOWN_GATES)}"
    value = GO_BOOLEANS.get(text)
    if value is None:
        fault = f'strconv.ParseBool: parsing "{text}": invalid syntax'
        return f"invalid value of {name}={text}, err: {fault}"
    if gate.locked and value != gate.default:
        wanted, locked = str(value).lower(), str(gate.default).lower()
        return f"cannot set feature gate {name} to {wanted}, feature is locked to {locked}"
    return ""


def _dependency_errors(gates: FeatureGates) -> Iterator[ConfigError]:
    for name, needed in DEPENDENCIES.items():
        off = " ".join(each for each in needed if not gates.enabled(each))
        if off and gates.enabled(name):
            fault = f"{name} is enabled, but depends on features that are disabled: [{off}]"
            yield ConfigError(FLAG, f"{name}=true", f"those gates to be on too: {fault}")
