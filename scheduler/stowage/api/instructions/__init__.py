"""Instructions: the outputs of the engine, which the operator executes.

A module for each kind: what writes volumes, claims or bindings, asks extenders, evicts victims,
tells users, or only reports. `Instruction` is the union of all.
"""

from __future__ import annotations

from typing import TypeAlias

from stowage.api.instructions.binding import (
    BindByExtender,
    BindPod,
    ReadPod,
    RunPreBind,
    StopPreBind,
)
from stowage.api.instructions.claims import (
    BindClaims,
    ClaimToBind,
    DeallocateClaim,
    DeleteClaim,
    ExtendedClaimToBind,
    ReleaseClaims,
)
from stowage.api.instructions.extenders import (
    ConsultExtenders,
    ConsultOnVictims,
    VictimsOnNode,
)
from stowage.api.instructions.preemption import (
    ClearNomination,
    EvictPod,
)
from stowage.api.instructions.references import (
    POD,
    POD_GROUP,
    ClaimReference,
    PodGroupReference,
    PodReference,
)
from stowage.api.instructions.reports import (
    AttemptResult,
    BindingConditionsAwaited,
    ConfigurationApplied,
    ConfigurationFailed,
    PodBound,
    PodGroupAttemptResult,
    PreemptionAttempted,
    PreemptionFinished,
    ReportProblem,
)
from stowage.api.instructions.statuses import (
    EmitEvent,
    PatchPodGroupStatus,
    PatchPodStatus,
)
from stowage.api.instructions.volumes import (
    BindVolumes,
    BindVolumeToClaim,
    SetSelectedNode,
)

__all__ = [
    "POD",
    "POD_GROUP",
    "AttemptResult",
    "BindByExtender",
    "BindClaims",
    "BindPod",
    "BindVolumeToClaim",
    "BindVolumes",
    "BindingConditionsAwaited",
    "ClaimReference",
    "ClaimToBind",
    "ClearNomination",
    "ConfigurationApplied",
    "ConfigurationFailed",
    "ConsultExtenders",
    "ConsultOnVictims",
    "DeallocateClaim",
    "DeleteClaim",
    "EmitEvent",
    "EvictPod",
    "ExtendedClaimToBind",
    "Instruction",
    "PatchPodGroupStatus",
    "PatchPodStatus",
    "PodBound",
    "PodGroupAttemptResult",
    "PodGroupReference",
    "PodReference",
    "PreemptionAttempted",
    "PreemptionFinished",
    "ReadPod",
    "ReleaseClaims",
    "ReportProblem",
    "RunPreBind",
    "SetSelectedNode",
    "StopPreBind",
    "VictimsOnNode",
]

Instruction: TypeAlias = (
    RunPreBind
    | StopPreBind
    | BindVolumes
    | BindClaims
    | ReleaseClaims
    | DeallocateClaim
    | DeleteClaim
    | BindPod
    | BindByExtender
    | ConsultExtenders
    | ConsultOnVictims
    | EvictPod
    | ClearNomination
    | PreemptionAttempted
    | PreemptionFinished
    | BindingConditionsAwaited
    | ReadPod
    | PatchPodStatus
    | EmitEvent
    | AttemptResult
    | PatchPodGroupStatus
    | PodGroupAttemptResult
    | PodBound
    | ReportProblem
    | ConfigurationApplied
    | ConfigurationFailed
)
