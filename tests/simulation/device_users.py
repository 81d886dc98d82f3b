"""Users that create pods with claims for devices, and drivers that change the devices."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from tests.simulation.device_claims import DeviceClaimController
from tests.simulation.device_objects import (
    ACCELERATOR,
    KINDS,
    NUM_WHOLE,
    PARTITION,
    WHOLE,
    delete_claim,
    device_claim_keys,
    make_device_claim,
    make_device_classes,
    make_fabric_slice,
    make_slices,
    owner_uid,
)
from tests.simulation.loop import VirtualLoop
from tests.simulation.objects import FAST, LOCAL, draw_pod, make_claim
from tests.simulation.server import (
    CLAIMS,
    DEVICE_CLAIMS,
    DEVICE_CLASSES,
    NODES,
    PODS,
    SLICES,
    Json,
    Key,
    ModelServer,
)

WITHOUT_DRIVER_S = 8.0
TROUBLE = (0.0, 0.2, 0.6)
WITH_VOLUME = 0.5
"""How many pods with devices have a volume if some have."""


class DeviceUsers:
    """Users and drivers of devices.

    Args:
        loop: The event loop.
        server: Stores the objects.
        controller: The claim controller, which gets slow.
        rng: Draws the details of each action.
        have_volumes: Whether pods with claims for devices may have a claim for a volume.

    Attributes:
        actions: The actions, with weights.
    """

    def __init__(
        self,
        loop: VirtualLoop,
        server: ModelServer,
        controller: DeviceClaimController,
        rng: random.Random,
        *,
        have_volumes: bool,
    ) -> None:
        self._loop = loop
        self._server = server
        self._controller = controller
        self._rng = rng
        self._have_volumes = have_volumes
        self._num_pods = 0
        self._num_claims = 0
        self._generations: dict[str, int] = {}
        self.actions: Sequence[tuple[int, Callable[[], None]]] = (
            (10, self._create_pod_with_devices),
            (4, self._create_burst_with_devices),
            (4, self._share_device_claim),
            (3, self._create_pod_with_accelerator),
            (3, self._delete_device_claim),
            (4, self._finish_pod_with_devices),
            (4, self._change_devices),
            (2, self._restart_driver),
            (3, self._slow_claim_controller),
        )

    def begin(self) -> None:
        """Create the classes, and the devices of all nodes."""
        for each in make_device_classes():
            self._server.create(DEVICE_CLASSES, each)
        self._server.create(SLICES, make_fabric_slice())
        for _, node_name in sorted(self._server.collection(NODES)):
            self._publish(node_name)
        self._create_burst_with_devices()

    def _publish(self, node_name: str) -> None:
        """Write the slices of a node's next generation, the second one a little later."""
        generation = self._generations[node_name] = self._generations.get(node_name, 0) + 1
        num_whole = self._rng.randint(*NUM_WHOLE)
        names = [f"{WHOLE}-{index}" for index in range(num_whole)] + [f"{PARTITION}-0"]
        tainted = self._rng.choice(names) if self._rng.random() < 0.25 else ""
        slices = list(make_slices(node_name, generation, num_whole, tainted))
        self._rng.shuffle(slices)
        self._put(slices[0])
        if self._rng.random() < 0.5:
            self._put(slices[1])
        else:
            self._loop.call_outside(self._rng.uniform(0, 3), self._put, slices[1])

    def _put(self, given: Json) -> None:
        """Create or replace a slice, unless a later generation is there."""
        found = self._server.collection(SLICES).get(("", given["metadata"]["name"]))
        if found is None:
            self._server.create(SLICES, given)
        elif found["spec"]["pool"]["generation"] <= given["spec"]["pool"]["generation"]:
            self._server.replace(SLICES, {**found, "spec": given["spec"]})

    def _draw_pod(self, entries: list[Json], volume_claim: str = "") -> Json:
        self._num_pods += 1
        pod = draw_pod(self._rng, f"device-pod-{self._num_pods}", volume_claim)
        pod["metadata"]["namespace"] = "default"
        pod["spec"]["resourceClaims"] = entries
        requests = pod["spec"]["containers"][0]["resources"]["requests"]
        requests["cpu"] = self._rng.choice(("100m", "100m", "500m"))
        return pod

    def _create_pod_with_devices(self) -> None:
        """Create a pod with one or two claims, made from templates or by the user."""
        entries: list[Json] = []
        claims: list[tuple[str, Json]] = []
        for name in ("first", "second")[: self._rng.choice((1, 1, 1, 2))]:
            kind = self._rng.choice(KINDS)
            if self._rng.random() < 0.7:
                entries.append({"name": name, "resourceClaimTemplateName": kind})
                continue
            self._num_claims += 1
            claim = make_device_claim(f"claim-of-user-{self._num_claims}", kind)
            claims.append((DEVICE_CLAIMS, claim))
            entries.append({"name": name, "resourceClaimName": claim["metadata"]["name"]})
        volume_claim = ""
        if self._have_volumes and self._rng.random() < WITH_VOLUME:
            volume_claim = f"claim-device-pod-{self._num_pods + 1}"
            claims.append((CLAIMS, make_claim(volume_claim, self._rng.choice((LOCAL, FAST)))))
        made = [(PODS, self._draw_pod(entries, volume_claim)), *claims]
        self._rng.shuffle(made)
        for path, obj in made:
            if self._rng.random() < 0.7:
                self._server.create(path, obj)
            else:
                self._loop.call_outside(self._rng.uniform(0, 4), self._server.create, path, obj)

    def _create_burst_with_devices(self) -> None:
        for _ in range(self._rng.randint(3, 8)):
            self._create_pod_with_devices()

    def _create_pod_with_accelerator(self) -> None:
        """Create a pod that asks for an extended resource, which devices serve."""
        pod = self._draw_pod([])
        pod["spec"]["containers"][0]["resources"]["requests"][ACCELERATOR] = "1"
        self._server.create(PODS, pod)

    def _share_device_claim(self) -> None:
        """Create a second pod for a claim."""
        key = self._any(DEVICE_CLAIMS, lambda claim: not owner_uid(claim))
        if key is not None:
            entry = {"name": "first", "resourceClaimName": key[1]}
            self._server.create(PODS, self._draw_pod([entry]))

    def _delete_device_claim(self) -> None:
        key = self._any(DEVICE_CLAIMS, lambda _claim: True)
        if key is not None:
            delete_claim(self._server, key)

    def _finish_pod_with_devices(self) -> None:
        key = self._any(
            PODS, lambda pod: bool(device_claim_keys(pod)) and "nodeName" in pod["spec"]
        )
        if key is not None:
            self._server.update(PODS, key, status={"phase": "Succeeded"})

    def _any(self, path: str, applies: Callable[[Json], bool]) -> Key | None:
        keys = [key for key, obj in sorted(self._server.collection(path).items()) if applies(obj)]
        return self._rng.choice(keys) if keys else None

    def _change_devices(self) -> None:
        """A driver publishes other devices of a node."""
        node_names = sorted(self._generations)
        self._publish(self._rng.choice(node_names))

    def _restart_driver(self) -> None:
        """A driver removes the slices of a node, and publishes devices anew later."""
        node_name = self._rng.choice(sorted(self._generations))
        for _, name in sorted(self._server.collection(SLICES)):
            if name.startswith(f"{node_name}-"):
                self._server.delete(SLICES, ("", name))
        delay_s = self._rng.uniform(0, WITHOUT_DRIVER_S)
        self._loop.call_outside(delay_s, self._publish, node_name)

    def _slow_claim_controller(self) -> None:
        self._controller.trouble = self._rng.choice(TROUBLE)
