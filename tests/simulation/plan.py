"""What happens in a simulated cluster's life, drawn from a seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tests.simulation.attachments import AttachDetachController
from tests.simulation.disturbances import Disturbances, Machines
from tests.simulation.extender_network import make_servers
from tests.simulation.extenders import draw_extenders
from tests.simulation.kubelet import Kubelets
from tests.simulation.loop import VirtualLoop
from tests.simulation.network import Network
from tests.simulation.probes import Probes
from tests.simulation.replica import Replica
from tests.simulation.server import ModelServer
from tests.simulation.storage import VolumeController
from tests.simulation.users import Action, Users

STORMY_S = 60.0
"""How long things go wrong."""

SETTLED_S = 70.0
"""How long after the last fault everything must be as it should: leases, back-offs, retries."""

LAST_S = 40.0
"""How long everything goes on after the leader is killed once more."""

NUM_EVENTS = 80
NUM_REPLICAS = (1, 3)


@dataclass(frozen=True, slots=True)
class Emphasis:
    """What a plan is to have more of.

    Attributes:
        faults: Kinds of faults with the probability they have as long as things go wrong.
        often: Names of actions, ten times as likely as usual.
        extenders: Kinds of extenders that are there, and may not be ignored.
    """

    faults: Mapping[str, float] = field(default_factory=dict)
    often: frozenset[str] = frozenset()
    extenders: tuple[str, ...] = ()


class Plan:
    """Draws what happens, and has it happen.

    A storm, then calm in which everything has to settle, then the death of the leader.

    Args:
        loop: Whose clock counts.
        server: Where things happen.
        network: What gets worse and better.
        rng: Draws everything.
        emphasis: What there is more of.

    Attributes:
        replicas: The schedulers.
        users: What is wanted of them.
        probes: What is measured in the calm.
        log: What was done, with its time, for a trace.
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
        extenders = draw_extenders(rng, emphasis.extenders)
        servers = make_servers(extenders, network)
        self.replicas: Sequence[Replica] = [
            Replica(f"replica-{index}", loop, network, servers, random.Random(rng.random()))
            for index in range(rng.randint(*NUM_REPLICAS))
        ]
        volumes = VolumeController(loop, server, rng, network.weather)
        attachments = AttachDetachController(loop, server, rng, network.weather)
        self.users = Users(loop, server, volumes, rng, extenders)
        self._disturbances = Disturbances(
            Machines(loop, server, network, volumes, attachments, self.replicas),
            self.users,
            rng,
            emphasis.faults,
        )
        self.probes = Probes(loop, server)
        Kubelets(loop, server, rng)

    def begin(self) -> None:
        """Make the first objects, start the replicas, and set all dates."""
        self.users.begin()
        for replica in self.replicas:
            self._loop.call_outside(self._rng.uniform(0, 3), replica.start)
        self._disturbances.begin()
        weighted = [*self.users.actions, *self._disturbances.actions]
        actions = [action for _, action in weighted]
        weights = [
            weight * (10 if action.__name__.strip("_") in self._emphasis.often else 1)
            for weight, action in weighted
        ]
        for _ in range(NUM_EVENTS):
            action = self._rng.choices(actions, weights)[0]
            self._loop.call_outside(self._rng.uniform(0, STORMY_S), self._do, action)

    async def go_on(self, judge: Callable[[], None]) -> None:
        """Let time pass until everything must be as it should.

        Args:
            judge: Called when it must be for the first time, before the leader is killed, with
                whom everything would be gone that it has kept by mistake.
        """
        await self._until(STORMY_S)
        self._disturbances.end()
        self.users.repair()
        await self._until(self._disturbances.lasts_until)
        self._note("calm")
        self._network.weather.calm_since = self._loop.time()
        self.probes.begin()
        self.probes.send("after the storm")
        await self._until(self._loop.time() + SETTLED_S)
        judge()
        if sum(replica.engine is not None for replica in self.replicas) > 1:
            self._note("the leader is killed")
            self._disturbances.kill_leader()
            self.probes.send("after the leader")
        await self._until(self._loop.time() + LAST_S)

    async def _until(self, when: float) -> None:
        if when > self._loop.time():
            await self._loop.sleep_until(when)

    def _do(self, action: Action) -> None:
        name = action.__name__.strip("_")
        self._network.weather.happened[name] += 1
        self._note(name)
        action()

    def _note(self, what: str) -> None:
        self.log.append(f"{self._loop.time():8.3f} {what}")
