"""Invariants that hold once everything had time to settle."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from stowage.api import Node, Pod
from stowage.api.events import (
    AssignedPodSeen,
    DeviceObjectSeen,
    DisruptionBudgetSeen,
    Event,
    NamespaceSeen,
    NodeSeen,
    PendingPodSeen,
    StorageSeen,
)
from stowage.api.instructions import (
    BindByExtender,
    BindClaims,
    BindPod,
    BindVolumes,
    DeallocateClaim,
    DeleteClaim,
    EvictPod,
    PodReference,
)
from stowage.api.objects.device import DeviceClass, DeviceObject, ResourceClaim, ResourceSlice
from stowage.api.objects.namespace import Namespace
from stowage.api.objects.policy import PodDisruptionBudget
from stowage.engine import Engine
from stowage.state.cache import InvariantViolation
from tests.simulation.device_audit import idle_allocations, lacks_claims
from tests.simulation.extenders import is_interested, refused_by
from tests.simulation.feasible_nodes import (
    FINISHED,
    decoded,
    feasible_nodes,
    is_placed,
    on_nominated_node,
    plain_cluster,
    with_nominated,
)
from tests.simulation.fresh_engine import FreshEngine, for_fresh_engine, stored_pod
from tests.simulation.gang_audit import group_differences, group_events
from tests.simulation.gang_objects import (
    group_of,
    is_held,
    is_surplus_of_a_grown_rack,
    members_of,
)
from tests.simulation.known_objects import object_differences
from tests.simulation.server import (
    BUDGETS,
    DEVICE_CLAIMS,
    DEVICE_CLASSES,
    NAMESPACES,
    NODES,
    PODS,
    SLICES,
    Json,
    ModelServer,
)

_DEVICE_KINDS: tuple[tuple[type[DeviceObject], str], ...] = (
    (DeviceClass, DEVICE_CLASSES),
    (ResourceSlice, SLICES),
    (ResourceClaim, DEVICE_CLAIMS),
)

_COMPANIONS_DO_NOT_FIT = "pod group is unschedulable, waiting for minCount pods"
"""What a member is told that fits, in an attempt in which too few others fit."""

MAX_EVENTS_OF_A_KIND = 50
"""Limit of Events of one process with one reason about one pod.

A pod that waits for devices is tried more than once a second: whenever a claim changes, if nothing
else is active, because the queue then takes pods out of their backoff.
"""


def is_ours(pod: Pod, scheduler_names: Collection[str]) -> bool:
    """Whether a pod waits for one of these schedulers."""
    is_waiting = not pod.spec.node_name and pod.status.phase not in FINISHED
    return is_waiting and pod.spec.scheduler_name in scheduler_names


def cluster_violations(
    server: ModelServer, scheduler_names: Collection[str], extenders: Sequence[Json]
) -> Iterator[str]:
    """Violations in the cluster itself."""
    pods = [decoded(Pod, stored) for stored in server.collection(PODS).values()]
    waiting = [pod for pod in pods if is_ours(pod, scheduler_names)]
    yield from _pending_without_reason(server, waiting, extenders)
    yield from _overlooked_pods(server, pods, waiting, extenders)
    yield from idle_allocations(server, scheduler_names)
    for pod in waiting:
        if not pod.status.conditions and not _is_gated(server, pod):
            yield f"pod {pod.metadata.namespaced_name} is pending without a reason"
    for (process, uid, reason), times in server.events.items():
        if times > (1 if reason == "Scheduled" else MAX_EVENTS_OF_A_KIND):
            yield f"{process} wrote {reason} about {uid} {times} times"


def _is_gated(server: ModelServer, pod: Pod) -> bool:
    """Whether a pod is not tried, so that it gets no condition."""
    stored = stored_pod(server, pod.metadata.namespace, pod.metadata.name)
    is_gated = bool(pod.spec.scheduling_gates)
    return is_gated or lacks_claims(server, stored) or is_held(server, stored)


def engine_violations(
    server: ModelServer, engine: Engine, scheduler_names: Collection[str]
) -> Iterator[str]:
    """Differences between an engine and the server, and work that the engine has not finished."""
    try:
        engine.validate()
    except InvariantViolation as violation:
        yield f"broken: {violation}"
    nodes = {name for _, name in server.collection(NODES)}
    if nodes != set(engine.node_names()):
        yield f"the engine knows nodes {sorted(engine.node_names())}, there are {sorted(nodes)}"
    yield from _pod_differences(server, engine, scheduler_names)
    yield from object_differences(server, engine)
    yield from group_differences(server, engine, scheduler_names)
    yield from _storage_differences(server, engine)
    yield from _unfinished(engine)


def _pod_differences(
    server: ModelServer, engine: Engine, scheduler_names: Collection[str]
) -> Iterator[str]:
    known = {info.uid: info for info in engine.pods()}
    for stored in server.collection(PODS).values():
        pod = decoded(Pod, stored)
        info = known.pop(pod.metadata.uid, None)
        if info is None:
            if is_placed(pod) or is_ours(pod, scheduler_names):
                yield f"the engine does not know pod {pod.metadata.namespaced_name}"
        elif info.node_name != pod.spec.node_name:
            where = f"{info.node_name!r}, it is on {pod.spec.node_name!r}"
            yield f"the engine has pod {pod.metadata.namespaced_name} on {where}"
    for info in known.values():
        yield f"the engine knows pod {info.key} ({info.uid}), which is not there"


def _storage_differences(server: ModelServer, engine: Engine) -> Iterator[str]:
    storage = engine.state.cache.snapshot().storage
    known = {
        (kind, name): obj.metadata.resource_version
        for kind, names in storage.names().items()
        for name in names
        if (obj := storage.get_api_object(kind, name)) is not None
    }
    there = {
        (kind, key): obj.metadata.resource_version
        for (kind, key), obj in plain_cluster(server).storage.items()
    }
    for kind, key in sorted(known.items() ^ there.items(), key=str):
        yield f"the engine differs from the server in {kind[0].__name__} {kind[1]}: {key}"
    for what, uid in engine.state.cache.assumed_storage().items():
        yield f"{what} is still assumed for pod {uid}"


def _unfinished(engine: Engine) -> Iterator[str]:
    state = engine.state
    lasting = {
        "being bound": sorted(state.bindings.uids),
        "not confirmed": sorted(pod.uid for pod in state.bindings.unconfirmed),
        "waiting for volumes": sorted(state.bindings.object_waits.uids()),
        "writing claims in the name of an ended attempt": sorted(state.bindings.abandoned_writes),
        "reserving devices": sorted(state.cache.snapshot().devices.in_flight),
        "waiting at Permit": sorted(state.bindings.permit_waits.plugins()),
        "being preempted for": sorted(state.preemptions.uids),
        "with extenders": sorted(state.consultations.uids),
        "in flight": sorted(state.queue.in_flight()),
        "kept for pods in flight": [
            event for event, count in engine.in_flight_event_counts().items() if count
        ],
    }
    for what, found in lasting.items():
        if found:
            yield f"still {what}: {found}"
    num_assumed = engine.cache_counts()["assumed_pods"]
    if num_assumed:
        yield f"{num_assumed} pods are still assumed"


def _pending_without_reason(
    server: ModelServer, waiting: list[Pod], extenders: Sequence[Json]
) -> Iterator[str]:
    cluster = plain_cluster(server)
    # As upstream, a pod keeps its nominated node when an extender refuses that node later.
    keeps_places = any("preemptVerb" in each or "filterVerb" in each for each in extenders)
    nominated = waiting if keeps_places else _nominated_without_claims(server, waiting)
    for pod in waiting:
        stored = stored_pod(server, pod.metadata.namespace, pod.metadata.name)
        if group_of(stored) is not None:
            continue  # only a fresh engine judges members
        fitting = feasible_nodes(pod, with_nominated(cluster, pod, nominated))
        names = [name for name in fitting if not refused_by(extenders, stored, name)]
        if names:
            subject = f"pod {pod.metadata.namespaced_name} is pending"
            yield f"{subject} although it fits on {names}"


def _nominated_without_claims(server: ModelServer, waiting: list[Pod]) -> list[Pod]:
    """Pods whose claim was deleted after they were nominated.

    As in kube-scheduler, PreEnqueue stops them, and they keep the room on their nominated nodes.
    """
    return [
        pod
        for pod in waiting
        if ("", pod.status.nominated_node_name) in server.collection(NODES)
        and lacks_claims(server, stored_pod(server, pod.metadata.namespace, pod.metadata.name))
    ]


def _overlooked_pods(
    server: ModelServer, pods: list[Pod], waiting: list[Pod], extenders: Sequence[Json]
) -> Iterator[str]:
    """Pods that a fresh engine, shown all objects, would bind or preempt for."""
    if not waiting:
        return
    fresh_engine = FreshEngine(server, extenders)
    seen: list[Event] = [
        NodeSeen(decoded(Node, node)) for node in server.collection(NODES).values()
    ]
    seen += [StorageSeen(obj) for obj in plain_cluster(server).storage.values()]
    seen += [
        DisruptionBudgetSeen(decoded(PodDisruptionBudget, budget))
        for budget in server.collection(BUDGETS).values()
    ]
    seen += [AssignedPodSeen(pod) for pod in pods if is_placed(pod)]
    holding = {pod.metadata.uid: pod for pod in _nominated_without_claims(server, waiting)}
    seen += [AssignedPodSeen(on_nominated_node(pod)) for pod in holding.values()]
    seen += [
        NamespaceSeen(decoded(Namespace, stored))
        for stored in server.collection(NAMESPACES).values()
    ]
    seen += [
        DeviceObjectSeen(decoded(kind, stored))
        for kind, path in _DEVICE_KINDS
        for stored in server.collection(path).values()
    ]
    seen += group_events(server)
    seen += [
        PendingPodSeen(for_fresh_engine(pod)) for pod in waiting if pod.metadata.uid not in holding
    ]
    for instruction in fresh_engine.instructions(seen, len(waiting)):
        if isinstance(instruction, DeallocateClaim | DeleteClaim):
            if extenders and _was_preempted(server, instruction.pod):
                continue  # its next attempt, after the backoff, takes back what this one wrote
            name = instruction.claim.name
            yield f"pod {instruction.pod.key} is pending, and claim {name} could be taken back"
        elif isinstance(instruction, BindPod | BindByExtender | BindVolumes | BindClaims):
            if _may_wait(server, extenders, instruction.pod, instruction.node_name):
                continue
            yield f"pod {instruction.pod.key} is pending and could be on {instruction.node_name}"
        elif isinstance(instruction, EvictPod):
            victim, preemptor = instruction.victim, instruction.preemptor
            if victim.uid in holding:
                continue  # it takes no room from a preemptor of higher priority
            if (
                _may_fail_by_extenders(server, extenders, preemptor, victim)
                or _followed_a_companion(server, preemptor)
                or _depends_on_a_tie(server, extenders, seen, len(waiting), preemptor)
            ):
                continue
            yield f"pod {preemptor.key} is pending and could take the place of {victim.key}"


def _may_wait(
    server: ModelServer, extenders: Sequence[Json], pod: PodReference, node_name: str
) -> bool:
    """Whether a pod that fits on a node may wait, as in kube-scheduler."""
    if extenders and _was_preempted(server, pod):
        return True
    return is_surplus_of_a_grown_rack(
        server, stored_pod(server, pod.namespace, pod.name), node_name
    )


def _followed_a_companion(server: ModelServer, preemptor: PodReference) -> bool:
    """Whether a companion fitted in the last attempt, where the preemptor could not follow it.

    Members that share a claim go where the first one of them has room. Once another pod has taken
    that room, the first member would evict somewhere else, where all may fit; but a pod that comes
    to a node moves no waiting pod, in kube-scheduler either.
    """
    pod = stored_pod(server, preemptor.namespace, preemptor.name)
    group = group_of(pod)
    if group is None or "resourceClaims" not in pod["spec"]:
        return False
    return any(
        condition.get("message", "").startswith(_COMPANIONS_DO_NOT_FIT)
        for member in members_of(server, *group)
        for condition in member["status"].get("conditions", ())
    )


def _depends_on_a_tie(
    server: ModelServer,
    extenders: Sequence[Json],
    seen: Sequence[Event],
    num_pods: int,
    preemptor: PodReference,
) -> bool:
    """Whether a member of a group gets no node if another of equally good nodes is taken.

    As in kube-scheduler, each member takes one of the best nodes at random. If another member then
    has none, the group waits for an event, even if a second try would have found nodes for all.
    """
    if group_of(stored_pod(server, preemptor.namespace, preemptor.name)) is None:
        return False
    for tie in range(1, len(server.collection(NODES))):
        decided = FreshEngine(server, extenders, tie).instructions(seen, num_pods)
        if not any(_places(each, preemptor.uid) for each in decided):
            return True
    return False


def _places(instruction: object, uid: str) -> bool:
    """Whether an instruction binds a pod, or preempts for it."""
    if isinstance(instruction, BindPod | BindByExtender | BindVolumes | BindClaims):
        return instruction.pod.uid == uid
    return isinstance(instruction, EvictPod) and instruction.preemptor.uid == uid


def _was_preempted(server: ModelServer, pod: PodReference) -> bool:
    """Whether a pod lost its node while it was being bound.

    If an extender then refuses the preemptor, this happens again and again, as in kube-scheduler.
    """
    stored = stored_pod(server, pod.namespace, pod.name)
    texts = [each.get("message", "") for each in stored["status"].get("conditions", ())]
    return any("preempted" in text for text in texts)


def _may_fail_by_extenders(
    server: ModelServer, extenders: Sequence[Json], preemptor: PodReference, victim: PodReference
) -> bool:
    """Whether the answer of an extender may be why the preemptor waits.

    An extender's Filter sees only nodes with room. So it may refuse the preemptor after the victims
    are gone, and pods of lower priority take their place. An extender that spares some victims may
    have been asked about other victims of equal priority.
    """
    pod = stored_pod(server, preemptor.namespace, preemptor.name)
    spec = stored_pod(server, victim.namespace, victim.name)["spec"]
    node_name = spec.get("nodeName", "")  # none if the fresh engine has bound it just now
    is_reviewed = any("preemptVerb" in each and is_interested(each, pod) for each in extenders)
    return is_reviewed or bool(refused_by(extenders, pod, node_name))
