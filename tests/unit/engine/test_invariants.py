"""The checks of the engine's state: each finds the inconsistency that it is for."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stowage.api.events import AssignedPodSeen, NodeSeen, PendingPodSeen
from stowage.api.objects.device import ResourceClaim
from stowage.engine import Engine
from stowage.engine.state.bindings import BindingCycle, BindingPhase
from stowage.engine.state.preemptions import OngoingPreemption
from stowage.queue.queued_pod import QueueState
from stowage.state import InvariantViolation, PodInfo
from stowage.state.devices.devices import ClaimAllocation
from tests.support.builders import make_node, make_pod
from tests.support.device_builders import allocated, make_claim
from tests.support.engines import default_engine
from tests.support.volume_builders import make_volume

Break = Callable[[Engine], object]


@pytest.fixture
def engine() -> Engine:
    """A pod is being bound, one is unschedulable and nominated, one is active."""
    engine = default_engine()
    placed, large = make_pod("placed", cpu="1"), make_pod("large", cpu="100")
    engine.handle([NodeSeen(make_node("n0", cpu="4")), *map(PendingPodSeen, (placed, large))], 0.0)
    engine.schedule(0.0, 2)
    engine.handle([PendingPodSeen(make_pod("active", cpu="1"))], 0.0)
    engine.state.queue.nominator.nominate(_info(engine, "large"), "n0")
    engine.validate()
    return engine


def _cycle(engine: Engine) -> BindingCycle:
    (cycle,) = engine.state.bindings
    return cycle


def _info(engine: Engine, name: str) -> PodInfo:
    info = engine.state.queue.latest(f"uid-{name}")
    assert info is not None
    return info


def _wait_for_permit(engine: Engine) -> None:
    _cycle(engine).phase = BindingPhase.WAITING_ON_PERMIT


def _preempt_for_nothing(engine: Engine) -> None:
    large = _info(engine, "large")
    ongoing = OngoingPreemption(large.reference, large.scheduler_name, "n0", 0.0, large)
    engine.state.preemptions.start(ongoing)


def _leave_the_cache(engine: Engine) -> None:
    engine.state.cache.remove_pod("uid-placed")


def _queue_again(engine: Engine) -> None:
    engine.state.queue.add(_cycle(engine).queued.info, 0.0)


def _pop(engine: Engine) -> None:
    engine.state.queue.pop(0.0)


def _assume_a_volume(engine: Engine) -> None:
    volume = make_volume("v")
    engine.state.cache.update_storage(volume)
    engine.state.cache.assume_storage((volume,), (), "uid-large")


def _reserve_a_device(engine: Engine) -> None:
    claim = allocated(make_claim("c"), "n0", "gpu-0")
    assert claim.status.allocation is not None
    reserved = ClaimAllocation(claim.metadata.uid, "default/c", claim.status.allocation)
    engine.state.cache.snapshot().devices.begin(reserved, "uid-large")


def _create_a_claim(engine: Engine) -> ResourceClaim:
    claim = allocated(make_claim("created"), "n0", "gpu-0", version="3")
    pod = _cycle(engine).reference
    engine.state.bindings.created_claims.add(claim, pod)
    return claim


def _create_a_claim_that_is_shown(engine: Engine) -> None:
    claim = _create_a_claim(engine)
    assert claim.status.allocation is not None
    held = ClaimAllocation(claim.metadata.uid, "default/created", claim.status.allocation)
    engine.state.cache.begin_allocations((held,), "uid-placed")
    engine.validate()
    engine.state.cache.update_device_object(claim)


def _reject_otherwise(engine: Engine) -> None:
    (large,) = engine.state.queue.contents()[QueueState.UNSCHEDULABLE]
    large.unschedulable_plugins = {"NodeName"}


def _gate_for_nothing(engine: Engine) -> None:
    engine.schedule(0.0, 1)
    running = make_pod("running", cpu="2", priority=-1, node="n0")
    preemptor = make_pod("gated", cpu="2", priority=9)
    engine.handle([AssignedPodSeen(running), PendingPodSeen(preemptor)], 0.0)
    engine.schedule(0.0, 1)
    engine.state.queue.activate(("uid-gated",), 0.0)  # the gate holds it
    engine.validate()
    (preemption,) = engine.state.preemptions
    engine.state.preemptions.end(preemption)


def _preempt_while_bound(engine: Engine) -> None:
    placed = _cycle(engine).info
    ongoing = OngoingPreemption(placed.reference, placed.scheduler_name, "n0", 0.0, placed)
    ongoing.unanswered.add("uid-victim")
    engine.state.preemptions.start(ongoing)


BROKEN: dict[str, tuple[Break, str]] = {
    "a pod listed under other plugins": (_reject_otherwise, "scheduling queue: .*large"),
    "a permit wait that is not there": (_wait_for_permit, "bindings: .*expected a permit wait"),
    "a preemption without a victim": (_preempt_for_nothing, "preemptions: .* waits for nothing"),
    "a gated preemptor without a preemption": (
        _gate_for_nothing,
        "preemptions: .*gated is gated and waits for no eviction",
    ),
    "a preemptor that is bound too early": (
        _preempt_while_bound,
        "preemptions: .*placed is being bound before its last victim goes",
    ),
    "a pod being bound that is on no node": (_leave_the_cache, "placed being bound: .*absent"),
    "a pod being bound that is queued": (_queue_again, "placed being bound: .*queued"),
    "a pod in flight that nobody decides about": (_pop, "pods in flight"),
    "a volume assumed for a pod that is not being bound": (_assume_a_volume, "v assumed"),
    "a device in flight for nobody": (_reserve_a_device, "claims in flight"),
    "a created claim whose devices are free": (_create_a_claim, "claims in flight: .*uid-created"),
    "a created claim that the watch has shown": (
        _create_a_claim_that_is_shown,
        "claim default/created created: .*shown",
    ),
}


@pytest.mark.parametrize("what", BROKEN)
def test_validation_finds(what: str, engine: Engine) -> None:
    break_, message = BROKEN[what]
    break_(engine)
    with pytest.raises(InvariantViolation, match=message):
        engine.validate()


def test_validation_finds_a_nomination_that_the_columns_missed(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    nominator = engine.state.queue.nominator
    monkeypatch.setattr(nominator, "changed_since", lambda _generation: ())
    nominator.nominate(_info(engine, "active"), "n0")
    with pytest.raises(InvariantViolation, match="nominated pods are kept as"):
        engine.validate()
