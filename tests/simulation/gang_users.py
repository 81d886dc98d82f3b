"""Users that create pod groups with members, and change and delete both."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tests.simulation.device_objects import (
    PARTITION,
    REMOTE,
    SHARED,
    WHOLE,
    make_device_claim,
)
from tests.simulation.gang_objects import make_group, make_member, members_of
from tests.simulation.loop import VirtualLoop
from tests.simulation.objects import (
    AT_ONCE,
    FAST,
    LOCAL,
    RACK,
    RACKS,
    claimed_volume,
    make_claim,
)
from tests.simulation.server import (
    CLAIMS,
    DEVICE_CLAIMS,
    GROUPS,
    LABEL_GROUPS,
    NODES,
    PODS,
    Json,
    Key,
    ModelServer,
)

LATE_S = 8.0
"""How much later than its companions a member, or a group, is created at most."""

_RECENT = 4
"""Late members join one of so many latest gangs where gangs are in racks."""


class Gang(NamedTuple):
    """What users make a group of: equal members, so that their order does not matter.

    Attributes:
        path: The list path of its kind.
        name: The name.
        cpu: What a member requests.
        priority: The priority of the members.
        claim: The claim that its members share; empty without one.
        storage_class: The class of the volumes that its members have, one each; empty without.
    """

    path: str
    name: str
    cpu: str
    priority: int
    claim: str = ""
    storage_class: str = ""

    @property
    def key(self) -> Key:
        """Namespace and name."""
        return "default", self.name


class GangUsers:
    """Users of pod groups of both kinds.

    Args:
        loop: The event loop.
        server: Stores the objects.
        rng: Draws the details of each action.
        has_devices: Whether the members of some groups share a claim for a device.
        are_in_racks: Whether the members of most groups go to one rack, and those of some groups
            have volumes.

    Attributes:
        actions: The actions, with weights.
    """

    def __init__(
        self,
        loop: VirtualLoop,
        server: ModelServer,
        rng: random.Random,
        *,
        has_devices: bool,
        are_in_racks: bool,
    ) -> None:
        self._has_devices = has_devices
        self._are_in_racks = are_in_racks
        self._loop = loop
        self._server = server
        self._rng = rng
        self._gangs: list[Gang] = []
        self._num_members = 0
        self.actions: Sequence[tuple[int, Callable[[], None]]] = (
            (8, self._create_gang),
            (4, self._create_rivals),
            (4, self._add_member),
            (5, self._delete_member),
            (2, self._delete_gang),
            (2, self._delete_group),
            (2, self._recreate_group),
            (2, self._finish_member),
            (3, self._change_min_member),
            (2, self._serve_definition),
        )
        if are_in_racks:
            self.actions = (*self.actions, (3, self._move_node))

    def begin(self) -> None:
        """Serve the groups of Kubernetes, and perhaps those of the coscheduling plugin."""
        self._server.served_groups[GROUPS] = self._loop.time()
        if self._rng.random() < 0.7:
            self._serve_definition()
        for _ in range(2):
            self._create_gang()

    def make_room(self) -> None:
        """Delete all members, of which most nodes are full."""
        for gang in self._gangs:
            self._delete_members(gang)

    def _create_gang(self) -> None:
        """Create a group and its members in any order, perhaps more or fewer than it needs."""
        rng = self._rng
        path = rng.choice((GROUPS, GROUPS, LABEL_GROUPS))
        name = f"gang-{len(self._gangs) + 1}"
        gang = Gang(path, name, rng.choice(("500m", "1", "2")), rng.choice((0, 0, 0, 10)))
        if self._has_devices and rng.random() < 0.5:
            gang = gang._replace(claim=f"claim-of-{name}", cpu="500m")
            claim = make_device_claim(gang.claim, rng.choice((WHOLE, PARTITION, SHARED, REMOTE)))
            self._loop.call_outside(rng.uniform(0, 1), self._server.create, DEVICE_CLAIMS, claim)
        if self._are_in_racks and rng.random() < 0.3:
            gang = gang._replace(storage_class=rng.choice((LOCAL, FAST, FAST, AT_ONCE)))
        num_members = rng.randint(1, 6)
        min_count = max(1, num_members + rng.choice((-2, -1, 0, 0, 0, 1)))
        is_basic = path == GROUPS and rng.random() < 0.15
        self._create(gang, num_members, None if is_basic else min_count)

    def _create_rivals(self) -> None:
        """Create two gangs at once, of which a node takes two members."""
        for _ in range(2):
            gang = Gang(GROUPS, f"gang-{len(self._gangs) + 1}", "2", 0)
            size = self._rng.randint(3, 6)
            self._create(gang, size, size)

    def _create(self, gang: Gang, num_members: int, min_count: int | None) -> None:
        self._gangs.append(gang)
        made = [(PODS, self._member(gang)) for _ in range(num_members)]
        if gang.path in self._server.served_groups:
            made.append((gang.path, self._group(gang, min_count)))
        self._rng.shuffle(made)
        for path, obj in made:
            if self._rng.random() < 0.8:
                self._server.create(path, obj)
            else:
                delay_s = self._rng.uniform(0, LATE_S)
                self._loop.call_outside(delay_s, self._server.create, path, obj)

    def _group(self, gang: Gang, min_count: int | None) -> Json:
        may_be = self._are_in_racks and gang.path == GROUPS
        in_one_rack = may_be and self._rng.random() < 0.7
        return make_group(gang.path, gang.name, min_count, is_in_one_rack=in_one_rack)

    def _member(self, gang: Gang) -> Json:
        self._num_members += 1
        name = f"member-{self._num_members}"
        pod = make_member(gang.path, gang.name, name, gang.cpu, gang.priority)
        if gang.claim:
            pod["spec"]["resourceClaims"] = [{"name": "all", "resourceClaimName": gang.claim}]
        if gang.storage_class:
            volume = make_claim(f"claim-{name}", gang.storage_class)
            self._loop.call_outside(self._rng.uniform(0, 1), self._server.create, CLAIMS, volume)
            pod["spec"]["volumes"] = [claimed_volume(volume["metadata"]["name"])]
        return pod

    def _add_member(self) -> None:
        # Earlier gangs mostly have no group or no room; a late member is to join bound ones.
        gangs = self._gangs[-_RECENT:] if self._are_in_racks else self._gangs
        self._server.create(PODS, self._member(self._rng.choice(gangs)))

    def _delete_member(self) -> None:
        """Delete a member, bound or not: a bound one is gone a little later."""
        members = self._members_of_any()
        if members:
            metadata = self._rng.choice(members)["metadata"]
            self._server.terminate((metadata["namespace"], metadata["name"]))

    def _finish_member(self) -> None:
        bound = [pod for pod in self._members_of_any() if pod["spec"].get("nodeName")]
        if bound:
            metadata = self._rng.choice(bound)["metadata"]
            key = (metadata["namespace"], metadata["name"])
            self._server.update(PODS, key, status={"phase": "Succeeded"})

    def _delete_gang(self) -> None:
        """Delete all members, and then the group."""
        gang = self._rng.choice(self._gangs)
        self._delete_members(gang)
        self._server.delete(gang.path, gang.key)

    def _delete_members(self, gang: Gang) -> None:
        for pod in members_of(self._server, gang.path, gang.key):
            self._server.terminate((pod["metadata"]["namespace"], pod["metadata"]["name"]))

    def _delete_group(self) -> None:
        """Delete a group under its members."""
        gang = self._rng.choice(self._gangs)
        self._server.delete(gang.path, gang.key)

    def _recreate_group(self) -> None:
        """Create a group anew, or one that has never been there, perhaps with another minimum."""
        gang = self._rng.choice(self._gangs)
        if gang.path in self._server.served_groups:
            self._server.delete(gang.path, gang.key)
            group = self._group(gang, self._rng.randint(1, 4))
            self._server.create(gang.path, group)

    def _change_min_member(self) -> None:
        """Change the minimum of a group of the coscheduling plugin; the other kind forbids it."""
        keys = sorted(self._server.collection(LABEL_GROUPS))
        if keys:
            spec = {"minMember": self._rng.randint(1, 5)}
            self._server.update(LABEL_GROUPS, self._rng.choice(keys), spec=spec)

    def _move_node(self) -> None:
        """Move a node to the other rack, with its pods."""
        keys = sorted(self._server.collection(NODES))
        if keys:
            key = self._rng.choice(keys)
            labels = {**self._server.collection(NODES)[key]["metadata"]["labels"]}
            labels[RACK] = self._rng.choice(RACKS)
            self._server.update(NODES, key, metadata={"labels": labels})

    def _serve_definition(self) -> None:
        """Install the definition of the coscheduling plugin."""
        self._server.served_groups.setdefault(LABEL_GROUPS, self._loop.time())

    def _members_of_any(self) -> list[Json]:
        gang = self._rng.choice(self._gangs)
        return members_of(self._server, gang.path, gang.key)
