"""What happens to the server, the network and the processes."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tests.simulation.attachments import AttachDetachController
from tests.simulation.loop import VirtualLoop
from tests.simulation.network import Ambush, Network
from tests.simulation.replica import Replica
from tests.simulation.server import LEASES, ModelServer
from tests.simulation.storage import VolumeController
from tests.simulation.users import Action, Users
from tests.simulation.weather import EXTENDER_FAULTS, FAULTS

LEASE_S = 15.0
"""How long a lease lasts that nobody renews."""
PAUSE_S = (0.5, 25.0)
LONG_PAUSE_S = (LEASE_S + 1.0, LEASE_S + 10.0)
CLOCK_ERRORS_S = (-3600.0, -30.0, 0.0, 0.5, 30.0, 86400.0)
TROUBLE = (0.0, 0.1, 0.5)


@dataclass(frozen=True, slots=True)
class Machines:
    """What can be disturbed.

    Attributes:
        loop: Whose clock counts.
        server: What is restarted.
        network: What gets worse and better.
        volumes: What gets slow.
        attachments: What gets slow too.
        replicas: What is killed and stopped.
    """

    loop: VirtualLoop
    server: ModelServer
    network: Network
    volumes: VolumeController
    attachments: AttachDetachController
    replicas: Sequence[Replica]


class Disturbances:
    """Faults of machines.

    Args:
        machines: What has them.
        users: Who act at the worst moment.
        rng: Draws everything.
        faults: Kinds of faults with the probability they have as long as things go wrong.

    Attributes:
        actions: What happens, with weights.
        lasts_until: When the last of them will have passed.
    """

    def __init__(
        self, machines: Machines, users: Users, rng: random.Random, faults: Mapping[str, float]
    ) -> None:
        self.lasts_until = 0.0
        self._loop = machines.loop
        self._server = machines.server
        self._network = machines.network
        self._volumes = machines.volumes
        self._attachments = machines.attachments
        self._replicas = machines.replicas
        self._users = users
        self._rng = rng
        self._faults = faults
        self.actions: Sequence[tuple[int, Action]] = (
            (6, self._change_weather),
            (2, self._be_down),
            (2, self._restart_server),
            (2, self._restart_server_without_history),
            (2, self._trouble_volumes),
            (2, self._trouble_attachments),
            (3, self._kill),
            (2, self.kill_leader),
            (2, self._stop),
            (3, self._stop_leader_past_its_lease),
            (2, self._retire),
            (1, self._jump_clock),
            (1, self._jump_server_clock),
            (1, self._jump_all_clocks),
            (5, self._lie_in_wait),
        )

    def begin(self) -> None:
        """Have go wrong what is to go wrong from the beginning."""
        for fault, probability in self._faults.items():
            setattr(self._network.weather, fault, probability)

    def end(self) -> None:
        """Nothing goes wrong any more, but what is on its way."""
        self._network.weather.calm()
        self._network.ambushes.clear()
        self._volumes.trouble = self._attachments.trouble = 0.0

    def leader(self) -> Replica | None:
        """The replica that holds the lease; None if nobody who runs does."""
        leases = list(self._server.collection(LEASES).values())
        holder = leases[0]["spec"]["holderIdentity"] if leases else ""
        running = (each for each in self._replicas if each.is_running)
        return next((each for each in running if each.process_name == holder), None)

    def kill_leader(self) -> None:
        """SIGKILL for whoever holds the lease."""
        leader = self.leader()
        if leader is None:
            return
        num_running = sum(each.is_running for each in self._replicas)
        self._network.weather.happened[f"leader killed, {num_running - 1} standbys"] += 1
        leader.kill()

    def _change_weather(self) -> None:
        weather = self._network.weather
        weather.calm()
        self.begin()
        faults = self._rng.sample(FAULTS, self._rng.randint(0, 4))
        if self._users.extenders:
            faults += self._rng.sample(EXTENDER_FAULTS, self._rng.randint(0, 4))
        for fault in faults:
            setattr(weather, fault, self._rng.choice((0.02, 0.1, 0.3)))

    def _be_down(self) -> None:
        """The server is away for a while."""
        self._network.weather.is_down = True
        self._network.cut_all()
        self._loop.call_outside(self._rng.uniform(0.5, 12), self._be_up)

    def _be_up(self) -> None:
        self._network.weather.is_down = False

    def _restart_server(self) -> None:
        """End every watch."""
        self._network.cut_all()

    def _restart_server_without_history(self) -> None:
        """With the history lost, watches cannot go on where they were."""
        self._network.cut_all()
        self._server.compacted = self._server.revision

    def _trouble_volumes(self) -> None:
        self._volumes.trouble = self._rng.choice(TROUBLE)

    def _trouble_attachments(self) -> None:
        self._attachments.trouble = self._rng.choice(TROUBLE)

    def _kill(self) -> None:
        self._rng.choice(self._replicas).kill()

    def _stop(self) -> None:
        self._stop_for(self._rng.choice(self._replicas), self._rng.uniform(*PAUSE_S))

    def _stop_leader_past_its_lease(self) -> None:
        leader = self.leader()
        if leader is not None:
            self._network.weather.happened["leader stopped past its lease"] += 1
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
        """Everybody's, each elsewhere."""
        self._jump_server_clock()
        for replica in self._replicas:
            replica.wall_clock_error_s = self._rng.choice(CLOCK_ERRORS_S)

    def _lie_in_wait(self) -> None:
        """Have something happen at the very moment of the next write of a kind."""
        marks = self._rng.choice(
            ("/binding", "/binding", "/persistentvolume", "/leases/", "/extender/")
        )
        strike: Callable[[], None] = self._rng.choice(
            (
                self._be_down,
                self._restart_server_without_history,
                self.kill_leader,
                self._stop_leader_past_its_lease,
                *(action for _, action in self._users.actions),
            )
        )
        self._network.ambushes.append(Ambush(marks, self._rng.random() < 0.5, strike))
