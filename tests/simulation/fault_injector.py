"""Faults of the API server, the network, the controllers, the clocks and the replicas."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from tests.simulation.attachments import AttachDetachController
from tests.simulation.fault_rates import EXTENDER_FAULTS, FAULTS
from tests.simulation.loop import VirtualLoop
from tests.simulation.network import Network, WriteHook
from tests.simulation.replica import Replica
from tests.simulation.server import LEASES, ModelServer
from tests.simulation.storage import VolumeController
from tests.simulation.users import Action, Users

LEASE_S = 15.0
"""Duration of a lease that is not renewed."""
PAUSE_S = (0.5, 25.0)
LONG_PAUSE_S = (LEASE_S + 1.0, LEASE_S + 10.0)
CLOCK_ERRORS_S = (-3600.0, -30.0, 0.0, 0.5, 30.0, 86400.0)
TROUBLE = (0.0, 0.1, 0.5)


@dataclass(frozen=True, slots=True)
class FaultTargets:
    """The parts that faults are injected into.

    Attributes:
        loop: The event loop.
        server: The API server, which is restarted.
        network: The network, whose fault rates change.
        volumes: The volume controller, which gets slow.
        attachments: The attach-detach controller, which gets slow.
        replicas: The schedulers, which are killed and stopped.
    """

    loop: VirtualLoop
    server: ModelServer
    network: Network
    volumes: VolumeController
    attachments: AttachDetachController
    replicas: Sequence[Replica]


class FaultInjector:
    """Injects faults into the server, the network, the controllers and the replicas.

    Args:
        targets: The parts that faults are injected into.
        users: Their actions also run exactly when a write arrives.
        rng: Draws the faults.
        faults: Lowest probability of each of these faults during the fault phase.

    Attributes:
        actions: Actions that inject a fault, with weights.
        lasts_until: When the last paused replica continues.
    """

    def __init__(
        self, targets: FaultTargets, users: Users, rng: random.Random, faults: Mapping[str, float]
    ) -> None:
        self.lasts_until = 0.0
        self._loop = targets.loop
        self._server = targets.server
        self._network = targets.network
        self._volumes = targets.volumes
        self._attachments = targets.attachments
        self._replicas = targets.replicas
        self._users = users
        self._rng = rng
        self._faults = faults
        self.actions: Sequence[tuple[int, Action]] = (
            (6, self._change_fault_rates),
            (2, self._take_server_down),
            (2, self._restart_server),
            (2, self._restart_server_without_history),
            (2, self._slow_volume_controller),
            (2, self._slow_attachments),
            (3, self._kill),
            (2, self.kill_leader),
            (2, self._stop),
            (3, self._stop_leader_past_its_lease),
            (2, self._retire),
            (1, self._jump_clock),
            (1, self._jump_server_clock),
            (1, self._jump_all_clocks),
            (5, self._hook_next_write),
        )

    def begin(self) -> None:
        """Set the fault rates that hold from the beginning."""
        for fault, probability in self._faults.items():
            setattr(self._network.fault_rates, fault, probability)

    def end(self) -> None:
        """End all faults; messages in flight still arrive."""
        self._network.fault_rates.reset()
        self._network.write_hooks.clear()
        self._volumes.trouble = self._attachments.trouble = 0.0

    def leader(self) -> Replica | None:
        """The replica that holds the lease; None if no running replica does."""
        leases = list(self._server.collection(LEASES).values())
        holder = leases[0]["spec"]["holderIdentity"] if leases else ""
        running = (each for each in self._replicas if each.is_running)
        return next((each for each in running if each.process_name == holder), None)

    def kill_leader(self) -> None:
        """Send SIGKILL to the replica that holds the lease."""
        leader = self.leader()
        if leader is None:
            return
        num_running = sum(each.is_running for each in self._replicas)
        self._network.fault_rates.happened[f"leader killed, {num_running - 1} standbys"] += 1
        leader.kill()

    def _change_fault_rates(self) -> None:
        fault_rates = self._network.fault_rates
        fault_rates.reset()
        self.begin()
        faults = self._rng.sample(FAULTS, self._rng.randint(0, 4))
        if self._users.extenders:
            faults += self._rng.sample(EXTENDER_FAULTS, self._rng.randint(0, 4))
        for fault in faults:
            setattr(fault_rates, fault, self._rng.choice((0.02, 0.1, 0.3)))

    def _take_server_down(self) -> None:
        """The server is away for a while."""
        self._network.fault_rates.is_down = True
        self._network.cut_watches()
        self._loop.call_outside(self._rng.uniform(0.5, 12), self._bring_server_up)

    def _bring_server_up(self) -> None:
        self._network.fault_rates.is_down = False

    def _restart_server(self) -> None:
        """Restart the server: every watch ends."""
        self._network.cut_watches()

    def _restart_server_without_history(self) -> None:
        """Restart the server without its history: watches cannot resume."""
        self._network.cut_watches()
        self._server.compacted = self._server.revision

    def _slow_volume_controller(self) -> None:
        self._volumes.trouble = self._rng.choice(TROUBLE)

    def _slow_attachments(self) -> None:
        self._attachments.trouble = self._rng.choice(TROUBLE)

    def _kill(self) -> None:
        self._rng.choice(self._replicas).kill()

    def _stop(self) -> None:
        self._stop_for(self._rng.choice(self._replicas), self._rng.uniform(*PAUSE_S))

    def _stop_leader_past_its_lease(self) -> None:
        leader = self.leader()
        if leader is not None:
            self._network.fault_rates.happened["leader stopped past its lease"] += 1
            self._stop_for(leader, self._rng.uniform(*LONG_PAUSE_S))

    def _stop_for(self, replica: Replica, seconds: float) -> None:
        replica.stop_for(seconds)
        self.lasts_until = max(self.lasts_until, self._loop.time() + seconds)

    def _retire(self) -> None:
        self._rng.choice(self._replicas).retire()

    def _jump_clock(self) -> None:
        self._rng.choice(self._replicas).wall_clock_error_s = self._rng.choice(CLOCK_ERRORS_S)

    def _jump_server_clock(self) -> None:
        self._server.wall_clock_error_s = self._rng.choice(CLOCK_ERRORS_S)

    def _jump_all_clocks(self) -> None:
        """Jump the wall clocks of the server and of every replica, each to a different error."""
        self._jump_server_clock()
        for replica in self._replicas:
            replica.wall_clock_error_s = self._rng.choice(CLOCK_ERRORS_S)

    def _hook_next_write(self) -> None:
        """Trigger a fault or a user action exactly at the next write of a kind."""
        path_part = self._rng.choice(
            ("/binding", "/binding", "/persistentvolume", "/leases/", "/extender/")
        )
        callback: Callable[[], None] = self._rng.choice(
            (
                self._take_server_down,
                self._restart_server_without_history,
                self.kill_leader,
                self._stop_leader_past_its_lease,
                *(action for _, action in self._users.actions),
            )
        )
        self._network.write_hooks.append(WriteHook(path_part, self._rng.random() < 0.5, callback))

    def hook_next_claim_write(self) -> None:
        """Trigger a fault exactly at one of the next writes of claims, before or after it."""
        fault: Callable[[], None] = self._rng.choice(
            (
                self._take_server_down,
                self._restart_server_without_history,
                self.kill_leader,
                self.kill_leader,
                self._stop_leader_past_its_lease,
                self._retire,
            )
        )
        is_before = self._rng.random() < 0.5
        for _ in range(self._rng.randint(0, 3)):
            fault = partial(self._hook_claim_write, is_before, fault)
        self._hook_claim_write(is_before, fault)

    def _hook_claim_write(self, is_before: bool, run: Callable[[], None]) -> None:
        self._network.write_hooks.append(WriteHook("/resourceclaims/", is_before, run))
