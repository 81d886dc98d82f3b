"""`--feature-gates`: kube-scheduler's syntax, names, defaults and texts."""

from __future__ import annotations

import pytest

from stowage.api.config.errors import InvalidConfiguration
from stowage.api.config.feature_gate_table import DEPENDENCIES, KNOWN_GATES, Stage
from stowage.api.config.feature_gates import DEFAULT_FEATURE_GATES, parse_feature_gates

SCHEDULER_GATES = {
    # name: (stage, default) in kube-scheduler v1.36
    "SchedulerQueueingHints": (Stage.GA, True),
    "SchedulerAsyncPreemption": (Stage.BETA, True),
    "SchedulerPopFromBackoffQ": (Stage.BETA, True),
    "SchedulerAsyncAPICalls": (Stage.BETA, False),
    "OpportunisticBatching": (Stage.BETA, True),
    "NominatedNodeNameForExpectation": (Stage.BETA, True),
    "MatchLabelKeysInPodTopologySpread": (Stage.BETA, True),
    "NodeDeclaredFeatures": (Stage.BETA, True),
    "DynamicResourceAllocation": (Stage.GA, True),
    "DRAPrioritizedList": (Stage.GA, True),
    "DRAAdminAccess": (Stage.GA, True),
    "DRAConsumableCapacity": (Stage.BETA, True),
    "DRADeviceTaints": (Stage.BETA, True),
    "DRADeviceTaintRules": (Stage.BETA, False),
    "DRAPartitionableDevices": (Stage.BETA, True),
    "DRAExtendedResource": (Stage.BETA, True),
    "DRADeviceBindingConditions": (Stage.BETA, True),
    "DRASchedulerFilterTimeout": (Stage.BETA, True),
    "DRAResourceClaimDeviceStatus": (Stage.BETA, True),
    "DRANodeAllocatableResources": (Stage.ALPHA, False),
    "DRAWorkloadResourceClaims": (Stage.ALPHA, False),
    "DRAListTypeAttributes": (Stage.ALPHA, False),
    "TaintTolerationComparisonOperators": (Stage.ALPHA, False),
    "StorageCapacityScoring": (Stage.ALPHA, False),
    "VolumeLimitScaling": (Stage.ALPHA, False),
    "MutableCSINodeAllocatableCount": (Stage.GA, True),
    "GenericWorkload": (Stage.ALPHA, False),
    "GangScheduling": (Stage.ALPHA, False),
    "TopologyAwareWorkloadScheduling": (Stage.ALPHA, False),
    "WorkloadAwarePreemption": (Stage.ALPHA, False),
    "CoordinatedLeaderElection": (Stage.BETA, False),
    "ComponentFlagz": (Stage.BETA, True),
    "ComponentStatusz": (Stage.BETA, True),
}


def refusal(*values: str) -> str:
    with pytest.raises(InvalidConfiguration) as refused:
        parse_feature_gates(values)
    return str(refused.value)


def test_the_gates_of_the_scheduler_have_the_stages_and_defaults_of_v1_36() -> None:
    known = {name: (KNOWN_GATES[name].stage, KNOWN_GATES[name].default) for name in SCHEDULER_GATES}
    assert known == SCHEDULER_GATES


def test_alpha_gates_are_off_and_graduated_ones_on_by_default() -> None:
    for gate, value in DEFAULT_FEATURE_GATES.values():
        assert value == gate.default
        assert not (gate.stage is Stage.ALPHA and value), gate.name
        assert not (gate.stage is Stage.GA and not value), gate.name


def test_the_defaults_satisfy_the_dependencies() -> None:
    assert {name for needed in DEPENDENCIES.values() for name in needed} <= KNOWN_GATES.keys()
    assert parse_feature_gates([]) == DEFAULT_FEATURE_GATES


def test_gates_are_set_by_one_flag_or_several_and_the_last_value_wins() -> None:
    gates = parse_feature_gates(
        ["GenericWorkload=true, GangScheduling = T", "OpportunisticBatching=0,GangScheduling=false"]
    )
    assert gates.enabled("GenericWorkload")
    assert not gates.enabled("OpportunisticBatching")
    assert gates.set_to("GangScheduling") is False
    assert gates.set_to("TopologyAwareWorkloadScheduling") is None


def test_a_gate_may_name_its_component() -> None:
    assert parse_feature_gates(["kube:GenericWorkload=true"]).enabled("GenericWorkload")
    assert "component not registered: wardle" in refusal("wardle:GenericWorkload=true")
    assert "do not mix use" in refusal("kube:GenericWorkload=true,GangScheduling=true")


def test_all_gates_of_a_stage_are_set_unless_one_is_set_by_name() -> None:
    gates = parse_feature_gates(["AllAlpha=true,VolumeLimitScaling=false"])
    assert gates.enabled("GangScheduling")
    assert not gates.enabled("VolumeLimitScaling")
    assert not gates.enabled("DRADeviceTaintRules")
    off = parse_feature_gates(["AllBeta=false"])
    assert not off.enabled("OpportunisticBatching")
    assert off.enabled("DRAPrioritizedList")


@pytest.mark.parametrize(
    ("value", "want"),
    [
        (
            "GangSchedulin=true",
            "unrecognized feature gate: GangSchedulin; did you mean GangScheduling?",
        ),
        ("Unheard=true", "unrecognized feature gate: Unheard"),
        ("GangScheduling", "missing bool value for GangScheduling"),
        (
            "GangScheduling=yes",
            (
                "invalid value of GangScheduling=yes, err: strconv.ParseBool: "
                'parsing "yes": invalid syntax'
            ),
        ),
        (
            "DynamicResourceAllocation=false",
            "cannot set feature gate DynamicResourceAllocation to false, feature is locked to true",
        ),
        (
            "GangScheduling=true",
            (
                "GangScheduling is enabled, but depends on features that are disabled: "
                "[GenericWorkload]"
            ),
        ),
        (
            "NodeDeclaredFeatures=false,PodLevelResources=false",
            (
                "InPlacePodLevelResourcesVerticalScaling is enabled, but depends on features that "
                "are disabled: [PodLevelResources NodeDeclaredFeatures]"
            ),
        ),
    ],
)
def test_a_setting_that_kube_scheduler_refuses_is_refused_with_its_text(
    value: str, want: str
) -> None:
    assert want in refusal(value)


def test_all_errors_are_reported_at_once() -> None:
    text = refusal("A=true,B=true", "SidecarContainers=false")
    assert text.count("unrecognized feature gate") == 2
    assert "SidecarContainers" in text


def test_a_locked_gate_may_be_set_to_its_default() -> None:
    assert parse_feature_gates(["DynamicResourceAllocation=true"]).without_effect() == ()


def test_only_changed_gates_are_without_effect() -> None:
    gates = parse_feature_gates(["OpportunisticBatching=true,EventedPLEG=true"])
    assert gates.without_effect() == ("EventedPLEG=true",)
