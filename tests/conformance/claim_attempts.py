"""One attempt of a recorded case with claims, in the format of the record."""

from __future__ import annotations

from typing import Any

import numpy as np

from stowage.api.instructions import BindClaims, EmitEvent
from stowage.api.status import Code, Status
from stowage.api.values.quantity import parse_quantity
from stowage.engine.scheduling import (
    Failed,
    Scheduled,
    SchedulingRequest,
    TieBreaker,
    Unschedulable,
    schedule_pod,
)
from stowage.framework import (
    CycleState,
    ExtensionPoint,
    Framework,
    NodeVerdicts,
    PluginFailed,
    PluginVerdict,
)
from stowage.plugins.dynamic_resources import DynamicResources
from stowage.plugins.dynamic_resources.plugin import variant_at
from stowage.plugins.dynamic_resources.pod_claims import SPECIAL_CLAIM
from stowage.plugins.dynamic_resources.pod_devices import PodDevices
from stowage.state import PodInfo, Snapshot
from stowage.state.devices.devices import ClaimAllocation
from tests.conformance.claim_api import ClaimApi, claim_record
from tests.conformance.cycle_records import (
    Answer,
    pre_filter_record,
    scheduled_record,
    status_record,
    unschedulable_record,
)
from tests.conformance.decision_cases import Cluster

_NAME = DynamicResources.name


def claim_attempt(framework: Framework, cluster: Cluster, key: str) -> tuple[Answer, CycleState]:
    """Schedule a pod up to PostFilter; the answer and the state of the cycle."""
    pod, state = cluster.pod(key), CycleState(wall_clock=lambda: cluster.now)
    gate = framework.run_pre_enqueue(pod)
    if not gate.is_success:
        return {"outcome": "Gated", "preEnqueue": status_record(gate)}, state
    if pod.terminating:
        return {"outcome": "SkippedTerminating"}, state
    snapshot = cluster.cache.snapshot()
    request = SchedulingRequest(framework, snapshot, pod, state, TieBreaker(lambda _: 0))
    result = schedule_pod(request)
    answer: Answer = {"nodesTotal": snapshot.num_nodes}
    if snapshot.num_nodes:
        answer |= _filtering(framework, snapshot, pod, cluster.now)
    if isinstance(result, Failed):
        answer |= {"outcome": "Error", "error": result.status.message, "errors": _errors(answer)}
    elif isinstance(result, Unschedulable):
        answer |= unschedulable_record(result) | _post_filter(result, framework, state, pod)
    elif isinstance(result, Scheduled):
        answer |= scheduled_record(framework, snapshot, pod, state, result)
    return answer, state


def finish_attempt(
    framework: Framework, cluster: Cluster, key: str, node_name: str, *, is_held: bool
) -> Answer:
    """Reserve and pre-bind a pod on the recorded node, and undo it if that fails."""
    pod, api = cluster.pod(key), cluster.api
    state = CycleState(wall_clock=lambda: cluster.now)
    snapshot = cluster.cache.snapshot()
    framework.run_pre_filter(state, pod, snapshot)
    framework.run_filter(state, pod, snapshot)
    reserved = framework.run_reserve(state, pod, node_name)
    if not reserved.status.is_success:
        return {"outcome": "ReserveFailed", "reserve": status_record(reserved.status)}
    allocations = [each for plan in reserved.plans.values() for each in plan.allocations]
    cluster.cache.begin_allocations(allocations, pod.uid)
    cluster.cache.assume_pod(pod, node_name)
    if is_held:
        return {"held": True}
    status = _pre_bind(framework, cluster, state, pod, node_name)
    answer: Answer = {}
    if not status.is_success:
        framework.run_unreserve(state, pod, node_name)
        cluster.cache.forget_pod(pod.uid)
        answer = {"outcome": "PreBindFailed"}
        answer["preBind"] = {"code": status.code.title, "reasons": list(status.reasons)}
    instructions = state.take_instructions()
    api.carry_out(instructions)
    cluster.cache.end_allocations([each.claim_uid for each in allocations])
    cluster.see_claims()
    events = [
        f"{each.event_type} {each.reason} {each.note}"
        for each in instructions
        if isinstance(each, EmitEvent)
    ]
    if events:
        answer["events"] = events
    return answer | _claims_of(pod, api, state) if status.is_success else answer


def _claims_of(pod: PodInfo, api: ClaimApi, state: CycleState) -> Answer:
    """The claims of a pod whose PreBind has succeeded, and what its status says of them."""
    names = [each.metadata.name for each in state.read(PodDevices).claims]
    answer: Answer = {}
    status = api.pod_statuses.get(pod.key)
    if status is not None:
        answer["extendedResourceClaimStatus"] = status
        names.append(status["resourceClaimName"])
    if names:
        claims = {name: api.claims.get(f"{pod.namespace}/{name}") for name in names}
        answer["claims"] = {
            name: None if each is None else claim_record(each) for name, each in claims.items()
        }
    return answer


def _pre_bind(
    framework: Framework, cluster: Cluster, state: CycleState, pod: PodInfo, node_name: str
) -> Status:
    """Run the PreBind of the claims: writes, their outcome, and the wait."""
    plan = framework.plan_pre_bind(state, pod, node_name)
    if _NAME not in plan.plugins:
        return plan.status
    staged = framework.staged_pre_bind(state, pod, node_name, _NAME)
    assert staged is not None
    writes = staged.writes()
    assert isinstance(writes, BindClaims)
    outcome = cluster.api.bind(writes)
    for claim in outcome.claims:
        cluster.cache.assume_claim(claim)
    try:
        staged.written(outcome)
    except PluginFailed as failure:
        return failure.status
    cluster.see_claims()
    progress = staged.progress(cluster.cache.snapshot())
    if progress.status.code is Code.WAIT:
        raise AssertionError(f"{pod.key} waits for {progress.awaited}")
    return progress.status


def _filtering(framework: Framework, snapshot: Snapshot, pod: PodInfo, now: float) -> Answer:
    state = CycleState(wall_clock=lambda: now)
    outcome = framework.run_pre_filter(state, pod, snapshot)
    answer: Answer = {"preFilter": pre_filter_record(outcome, state), "nodes": {}}
    if not outcome.status.is_success:
        return answer
    plugins: Any = framework.profile.plugins[ExtensionPoint.FILTER]
    rows = np.flatnonzero(snapshot.exists)
    if outcome.node_names is not None:
        rows = np.array(
            [row for row in rows.tolist() if snapshot.node_names[row] in outcome.node_names],
            dtype=np.int64,
        )
    view = snapshot.view(rows)
    verdicts = NodeVerdicts(
        view,
        [
            PluginVerdict(each.name, each.filter(state, pod, view))
            for each in plugins
            if each.name not in state.skip_filter
        ],
    )
    for position, row in enumerate(rows.tolist()):
        record = _node_record(verdicts, position)
        if any(
            each.plugin == _NAME and each.status(position).is_success for each in verdicts.answers
        ):
            record |= _devices(framework, state, pod, snapshot, row)
        answer["nodes"][snapshot.node_names[row]] = record
    return answer


def _node_record(verdicts: NodeVerdicts, position: int) -> Answer:
    status = verdicts.status(position)
    filtered = status_record(status)
    if status.code is Code.ERROR:
        doing = f'running "{status.plugin}" filter plugin'
        filtered["reasons"] = [f"{doing}: {each}" for each in status.reasons]
    record: Answer = {"filter": filtered}
    also: Answer = {}
    for answer in verdicts.answers:
        other = answer.status(position)
        if answer.plugin != status.plugin and not other.is_success:
            also[answer.plugin] = {"code": other.code.title, "reasons": sorted(other.reasons)}
    if also and not status.is_success:
        record["alsoRejectedBy"] = also
    return record


def _devices(
    framework: Framework, state: CycleState, pod: PodInfo, snapshot: Snapshot, row: int
) -> Answer:
    """What would be allocated on a node that DynamicResources accepts."""
    plugin: Any = framework.profile.instances[_NAME]
    found = state.read(PodDevices)
    allocations = plugin.allocations_on(row, state, pod, snapshot)
    if not allocations:
        return {}
    record: Answer = {
        "devices": {
            each.claim.partition("/")[2]: [*map(_device_text, each.allocation.devices.results)]
            for each in allocations
            if each.allocation.devices.results or _is_special(each)
        }
    }
    variant = variant_at(found.variants or (), row)
    if variant is not None and variant.extended is not None and variant.extended.mappings:
        record["requestMappings"] = [
            f"{each.container_name} {each.resource_name} {each.request_name}"
            for each in variant.extended.mappings
        ]
    return record


def _is_special(allocation: ClaimAllocation) -> bool:
    return allocation.claim.endswith(SPECIAL_CLAIM)


def _device_text(result: Any) -> str:
    text = f"{result.request}={result.driver}/{result.pool}/{result.device}"
    if result.admin_access:
        text += " admin"
    if result.consumed_capacity:
        amounts = sorted(result.consumed_capacity.items())
        text += " {" + ",".join(f"{name}={amount}" for name, amount in amounts) + "}"
    return text


def _errors(answer: Answer) -> dict[str, str]:
    return {
        name: record["filter"]["reasons"][0]
        for name, record in answer.get("nodes", {}).items()
        if record["filter"]["code"] == Code.ERROR.title
    }


def _post_filter(
    result: Unschedulable, framework: Framework, state: CycleState, pod: PodInfo
) -> Answer:
    """The result of PostFilter; nothing if it had no node to try."""
    if not result.diagnosis.num_nodes:
        return {}
    status = result.post_filter_status
    record = status_record(status) | {"message": status.message}
    answer: Answer = {"postFilter": record}
    plugin: Any = framework.profile.instances[_NAME]
    if state.get(PodDevices) is not None:
        candidates = plugin.deallocation_candidates(state, pod, result.diagnosis)
        if candidates:
            answer["deallocationCandidates"] = [
                each.metadata.namespaced_name for each in candidates
            ]
    return answer


def comparable(value: Any, key: str = "") -> Any:
    """A record whose quantities are numbers."""
    if isinstance(value, dict):
        if key == "consumedCapacity":
            return {name: parse_quantity(each).nano_value() for name, each in value.items()}
        return {
            name: comparable(each, name) for name, each in value.items() if name != "generateName"
        }
    if isinstance(value, list):
        return [comparable(each) for each in value]
    return _comparable_text(value) if isinstance(value, str) else value


def _comparable_text(text: str) -> str:
    if "CEL compile error:" in text or "CEL runtime error:" in text:
        return text
    head, brace, amounts = text.partition(" {")
    if not brace or not amounts.endswith("}") or "=" not in amounts:
        return text
    pairs = (each.partition("=") for each in amounts[:-1].split(","))
    numbers = (f"{name}={parse_quantity(amount).nano_value()}" for name, _, amount in pairs)
    return f"{head} {{{','.join(numbers)}}}"
