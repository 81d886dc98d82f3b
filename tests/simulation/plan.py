"""The schedule of a simulation: actions and their times, drawn from a seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tests.simulation.attachments import AttachDetachController
from tests.simulation.device_claims import DeviceClaimController
from tests.simulation.device_users import DeviceUsers
from tests.simulation.extender_network import make_servers
from tests.simulation.extenders import draw_extenders
from tests.simulation.fault_injector import FaultInjector, FaultTargets
from tests.simulation.gang_users import GangUsers
from tests.simulation.kubelet import Kubelets
from tests.simulation.loop import VirtualLoop
from tests.simulation.network import Network
from tests.simulation.probes import Probes
from tests.simulation.replica import Replica
from tests.simulation.server import ModelServer
from tests.simulation.storage import VolumeController
from tests.simulation.users import Action, Users

NUM_EVENTS = (20, 60)
"""Least and most actions of a fault phase; devices and pod groups have half as many each."""

MANY_EVENTS = 80
"""Number of actions of a long fault phase."""

EVENT_EVERY_S = 0.75
"""Duration of the fault phase for each of its actions.

Short lives find more planted faults in a second of CPU than long ones (`detection`); some faults
need long ones.
"""

SETTLE_S = 70.0
"""After the last fault, how long leases, backoffs and retries may take to settle."""

BUSY_S = 5.0
"""How long a check waits at most while a replica tries or binds a pod: if extenders keep a pod from
its node, this happens again and again."""

AFTER_KILL_S = 40.0
"""How long the simulation runs after the leader was killed."""

NUM_CALM_GANG_EVENTS = 20
NUM_CALM_RACK_EVENTS = 50
CALM_GANGS_S = 40.0
"""How long users change pod groups without faults; the same time is left to settle."""
NUM_REPLICAS = (1, 3)


@dataclass(frozen=True, slots=True)
class Emphasis:
    """Actions and faults that are to happen more often.

    Attributes:
        faults: Lowest probability of each of these faults during the fault phase.
        often: Names of actions that are ten times as likely as usual.
        extenders: Kinds of extenders that are always configured, and not ignorable.
        num_events: Number of actions of the fault phase; 0 draws it.
        has_devices: Whether nodes have devices, and users create pods with claims for them.
        have_volumes: Whether half of the pods with devices have a volume, too.
        has_gangs: Whether users create pod groups, and there are no extenders.
        are_in_racks: Whether the members of most groups go to one rack, nodes change theirs, and
            members of some groups have volumes.
    """

    faults: Mapping[str, float] = field(default_factory=dict)
    often: frozenset[str] = frozenset()
    extenders: tuple[str, ...] = ()
    num_events: int = 0
    has_devices: bool = False
    have_volumes: bool = False
    has_gangs: bool = False
    are_in_racks: bool = False


class Plan:
    """Draws actions and runs them.

    Three phases: faults; calm, in which everything has to settle; and the leader is killed. With
    gangs, users change them without faults before that.

    Args:
        loop: The event loop.
        server: The API server.
        network: The network, whose fault rates change.
        rng: Draws all actions and times.
        emphasis: Actions and faults that are to happen more often.

    Attributes:
        replicas: The schedulers.
        users: The users and other schedulers.
        probes: Pods that measure the time to recover.
        log: The actions with their times, for the trace.
    """

    def __init__(
        self,
        loop: VirtualLoop,
        server: ModelServer,
        network: Network,
        rng: random.Random,
        emphasis: Emphasis,
    ) -> None:
        self.log: list[str] = []
        self._emphasis = emphasis
        self._loop = loop
        self._network = network
        self._rng = rng
        extenders = [] if emphasis.has_gangs else draw_extenders(rng, emphasis.extenders)
        servers = make_servers(extenders, network)
        self.replicas: Sequence[Replica] = [
            Replica(f"replica-{index}", loop, network, servers, random.Random(rng.random()))
            for index in range(rng.randint(*NUM_REPLICAS))
        ]
        for replica in self.replicas:
            replica.has_gangs = emphasis.has_gangs
        volumes = VolumeController(loop, server, rng, network.fault_rates)
        attachments = AttachDetachController(loop, server, rng, network.fault_rates)
        self.users = Users(loop, server, volumes, rng, extenders)
        self._claims = DeviceClaimController(loop, server, rng, network.fault_rates)
        self._device_users = DeviceUsers(
            loop, server, self._claims, rng, have_volumes=emphasis.have_volumes
        )
        self._gang_users = GangUsers(
            loop,
            server,
            rng,
            has_devices=emphasis.has_devices,
            are_in_racks=emphasis.are_in_racks,
        )
        self._fault_injector = FaultInjector(
            FaultTargets(loop, server, network, volumes, attachments, self.replicas),
            self.users,
            rng,
            emphasis.faults,
        )
        self.probes = Probes(loop, server)
        self._num_events = emphasis.num_events or rng.randint(*NUM_EVENTS)
        self._faults_s = self._num_events * EVENT_EVERY_S
        Kubelets(loop, server, rng)

    def begin(self) -> None:
        """Create the first objects, start the replicas, and set a timer for every action."""
        self.users.begin()
        if self._emphasis.has_devices:
            self._device_users.begin()
        if self._emphasis.has_gangs:
            self._gang_users.begin()
        for replica in self.replicas:
            self._loop.call_outside(self._rng.uniform(0, 3), replica.start)
        self._fault_injector.begin()
        actions = [*self.users.actions, *self._fault_injector.actions]
        self._draw(actions, self._num_events, self._faults_s)
        if self._emphasis.has_devices:
            at_writes = (8, self._fault_injector.hook_next_claim_write)
            device_actions = [*self._device_users.actions, at_writes]
            self._draw(device_actions, self._num_events // 2, self._faults_s)
        if self._emphasis.has_gangs:
            self._draw(self._gang_users.actions, self._num_events // 2, self._faults_s)

    def _draw(self, weighted: Sequence[tuple[int, Action]], number: int, lasts_s: float) -> None:
        """Set timers for a number of these actions within the next seconds."""
        actions = [action for _, action in weighted]
        weights = [
            weight * (10 if action.__name__.strip("_") in self._emphasis.often else 1)
            for weight, action in weighted
        ]
        for _ in range(number):
            action = self._rng.choices(actions, weights)[0]
            self._loop.call_outside(self._rng.uniform(0, lasts_s), self._do, action)

    async def run(self, check: Callable[[], None]) -> None:
        """Run all phases.

        Args:
            check: Called when everything must have settled: before the leader is killed and its
                state is lost, and at the end.
        """
        await self._until(self._faults_s)
        self._fault_injector.end()
        self._claims.trouble = 0.0
        self.users.repair()
        await self._until(self._fault_injector.lasts_until)
        self._note("the faults end")
        self._network.fault_rates.calm_since = self._loop.time()
        self.probes.begin()
        self.probes.send("after the faults")
        await self._until(self._loop.time() + SETTLE_S)
        await self._idle()
        check()
        if self._emphasis.has_gangs:
            num_events = NUM_CALM_GANG_EVENTS
            if self._emphasis.are_in_racks:
                self._gang_users.make_room()
                num_events = NUM_CALM_RACK_EVENTS
            self._draw(self._gang_users.actions, num_events, CALM_GANGS_S)
            await self._until(self._loop.time() + 2 * CALM_GANGS_S)
            await self._idle()
            check()
        if sum(replica.engine is not None for replica in self.replicas) > 1:
            self._note("the leader is killed")
            self._fault_injector.kill_leader()
            self.probes.send("after the leader was killed")
        await self._until(self._loop.time() + AFTER_KILL_S)
        await self._idle()
        check()

    async def _idle(self) -> None:
        """Wait until no replica tries or binds a pod, but not for long."""
        limit = self._loop.time() + BUSY_S
        while any(map(_is_busy, self.replicas)) and self._loop.time() < limit:
            await self._until(self._loop.time() + 0.02)

    async def _until(self, when: float) -> None:
        if when > self._loop.time():
            await self._loop.sleep_until(when)

    def _do(self, action: Action) -> None:
        name = action.__name__.strip("_")
        self._network.fault_rates.happened[name] += 1
        self._note(name)
        action()

    def _note(self, what: str) -> None:
        self.log.append(f"{self._loop.time():8.3f} {what}")


def _is_busy(replica: Replica) -> bool:
    if replica.engine is None:
        return False
    state = replica.engine.state
    return bool(state.queue.in_flight() or state.bindings.uids or state.bindings.abandoned_writes)
