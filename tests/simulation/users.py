"""Actions of users, administrators and other schedulers."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TypeAlias

from tests.simulation.configurations import (
    CONFIG_MAP_KEY,
    config_map,
    draw_broken_text,
    draw_text,
    first_text,
)
from tests.simulation.loop import VirtualLoop
from tests.simulation.objects import (
    AT_ONCE,
    FAST,
    GADGET,
    LOCAL,
    MAX_NODE_CPUS,
    NAMESPACE,
    SECOND_NAMESPACE,
    TEAMS,
    TROUBLE,
    draw_pod,
    make_budget,
    make_claim,
    make_classes,
    make_csi_node,
    make_namespace,
    make_node,
    make_pod,
    make_volume,
)
from tests.simulation.server import (
    BUDGETS,
    CLAIMS,
    CLASSES,
    CONFIG_MAPS,
    CSI_NODES,
    NAMESPACES,
    NODES,
    PODS,
    VOLUMES,
    Json,
    Key,
    ModelServer,
)
from tests.simulation.storage import VolumeController

Action: TypeAlias = Callable[[], None]

LESS_CPU = {"100m": "50m", "50m": "50m"}
"""CPUs of a shrunk pod by its CPUs before; others keep 250m."""
NUM_NODES = (2, 6)
NUM_LOCAL_VOLUMES = (2, 6)
NODES_GONE_S = 10.0
EVICTED_WITHIN_S = 5.0
BROKEN_S = (1.0, 8.0)
"""How long an invalid configuration stays."""


class Users:
    """Users, administrators and other schedulers.

    Args:
        loop: The event loop.
        server: Stores the objects.
        volumes: The volume controller.
        rng: Draws the details of each action.
        extenders: The extenders of every configuration.

    Attributes:
        extenders: The same.
        actions: The actions, with weights.
        text: The last valid configuration.
    """

    def __init__(
        self,
        loop: VirtualLoop,
        server: ModelServer,
        volumes: VolumeController,
        rng: random.Random,
        extenders: Sequence[Json] = (),
    ) -> None:
        self.extenders = extenders
        self.text = first_text(extenders)
        self._loop = loop
        self._server = server
        self._volumes = volumes
        self._rng = rng
        self._num_pods = 0
        self.actions: Sequence[tuple[int, Action]] = (
            (12, self._create_pod),
            (5, self._create_burst),
            (6, self._create_pod_with_claim),
            (2, self._share_claim),
            (5, self._delete_pod),
            (4, self._delete_many),
            (3, self._recreate_pod),
            (2, self._recreate_claim),
            (2, self._bind_claim_to_another),
            (2, self._remove_node),
            (2, self._cordon_or_uncordon),
            (2, self._relabel_node),
            (2, self._grow_node),
            (3, self._taint_or_untaint),
            (2, self._relabel_namespace),
            (2, self._shrink_pod),
            (2, self._open_gate),
            (3, self._bind_by_another),
            (2, self._place_by_another),
            (2, self._finish_pod),
            (2, self._change_budget),
            (1, self._replace_budget),
            (2, self._edit_configuration),
            (1, self._break_configuration),
            (1, self._remove_configuration),
        )

    def begin(self) -> None:
        """Create the first objects."""
        server, rng = self._server, self._rng
        for name in (NAMESPACE, SECOND_NAMESPACE):
            server.create(NAMESPACES, make_namespace(name, rng.choice(TEAMS)))
        server.create(CONFIG_MAPS, config_map(self.text))
        for storage_class in make_classes():
            server.create(CLASSES, storage_class)
        names = [f"node-{index}" for index in range(rng.randint(*NUM_NODES))]
        for name in names:
            server.create(NODES, make_node(name))
            server.create(CSI_NODES, make_csi_node(name))
        for index in range(rng.randint(*NUM_LOCAL_VOLUMES)):
            server.create(VOLUMES, make_volume(f"disk-{index}", LOCAL, rng.choice(names)))
        for app in "ab":
            server.create(BUDGETS, make_budget(f"budget-{app}", app, rng.randint(0, 2)))
        for _ in range(rng.randint(0, 10)):
            self._create_pod()

    def repair(self) -> None:
        """Restore the last valid configuration."""
        found = self._server.collection(CONFIG_MAPS).get(CONFIG_MAP_KEY)
        if found is None:
            self._server.create(CONFIG_MAPS, config_map(self.text))
        elif found["data"] != config_map(self.text)["data"]:
            self._server.update(CONFIG_MAPS, CONFIG_MAP_KEY, data=config_map(self.text)["data"])

    def any(self, path: str) -> Key | None:
        """A random object of a kind."""
        keys = sorted(self._server.collection(path))
        return self._rng.choice(keys) if keys else None

    def _create_pod(self) -> None:
        self._num_pods += 1
        self._server.create(PODS, self._draw_pod(f"pod-{self._num_pods}"))

    def _draw_pod(self, name: str, claim: str = "") -> Json:
        """A random pod; it requests a gadget only where an extender manages gadgets."""
        pod = draw_pod(self._rng, name, claim)
        if any("managedResources" in each for each in self.extenders) and self._rng.random() < 0.4:
            pod["spec"]["containers"][0]["resources"]["requests"][GADGET] = "1"
        return pod

    def _create_burst(self) -> None:
        for _ in range(self._rng.randint(4, 12)):
            self._create_pod()

    def _create_pod_with_claim(self) -> None:
        self._num_pods += 1
        name = f"pod-{self._num_pods}"
        claim = make_claim(f"claim-{name}", self._rng.choice((LOCAL, FAST, FAST, AT_ONCE)))
        if self._rng.random() < 0.2:
            claim["spec"]["accessModes"] = ["ReadWriteOncePod"]
        # The pod or the claim may come first.
        made = [(CLAIMS, claim), (PODS, self._draw_pod(name, claim["metadata"]["name"]))]
        self._rng.shuffle(made)
        self._server.create(*made[0])
        if self._rng.random() < 0.5:
            self._server.create(*made[1])
        else:
            self._loop.call_outside(self._rng.uniform(0, 5), self._server.create, *made[1])

    def _share_claim(self) -> None:
        """Create a second pod for a claim."""
        key = self.any(CLAIMS)
        if key is not None:
            self._num_pods += 1
            self._server.create(PODS, self._draw_pod(f"pod-{self._num_pods}", key[1]))

    def _delete_pod(self) -> None:
        key = self.any(PODS)
        if key is None:
            return
        claim_name = claim_of(self._server.collection(PODS)[key])
        self._server.delete(PODS, key)
        if claim_name and not self._is_used(claim_name) and self._rng.random() < 0.5:
            self._server.delete(CLAIMS, (key[0], claim_name))

    def _delete_many(self) -> None:
        """Delete many pods at once."""
        for _ in range(10):
            self._delete_pod()

    def _recreate_pod(self) -> None:
        """Replace a pod by another of the same name and claim."""
        key = self.any(PODS)
        if key is not None:
            claim_name = claim_of(self._server.collection(PODS)[key])
            self._server.delete(PODS, key)
            self._server.create(PODS, self._draw_pod(key[1], claim_name))

    def _recreate_claim(self) -> None:
        """Replace a claim by another of the same name, unless a pod runs with it."""
        key = self.any(CLAIMS)
        if key is not None and not self._is_used(key[1], by_placed=True):
            class_name = self._server.collection(CLAIMS)[key]["spec"]["storageClassName"]
            self._server.delete(CLAIMS, key)
            self._server.create(CLAIMS, make_claim(key[1], class_name))

    def _bind_claim_to_another(self) -> None:
        key = self.any(CLAIMS)
        if key is not None:
            self._volumes.bind_to_another(key)

    def _is_used(self, claim_name: str, by_placed: bool = False) -> bool:
        return any(
            claim_of(pod) == claim_name and (pod["spec"].get("nodeName") or not by_placed)
            for pod in self._server.collection(PODS).values()
        )

    def _remove_node(self) -> None:
        """Delete a node and bring it back later, with or without its pods."""
        key = self.any(NODES)
        if key is None:
            return
        node = self._server.collection(NODES)[key]
        self._server.delete(NODES, key)
        if self._rng.random() < 0.3:
            self._server.delete(CSI_NODES, key)
        if self._rng.random() < 0.5:
            for pod_key, pod in list(self._server.collection(PODS).items()):
                if pod["spec"].get("nodeName") == key[1]:
                    self._server.delete(PODS, pod_key)
        self._loop.call_outside(self._rng.uniform(0, NODES_GONE_S), self._return_node, node)

    def _return_node(self, node: Json) -> None:
        """Create the node again with its capacity only."""
        name = node["metadata"]["name"]
        if ("", name) not in self._server.collection(NODES):
            self._server.create(NODES, {**make_node(name), "status": node["status"]})
        if ("", name) not in self._server.collection(CSI_NODES):
            self._loop.call_outside(self._rng.uniform(0, 3), self._return_csi_node, name)

    def _return_csi_node(self, name: str) -> None:
        if ("", name) not in self._server.collection(CSI_NODES):
            self._server.create(CSI_NODES, make_csi_node(name))

    def _grow_node(self) -> None:
        key = self.any(NODES)
        if key is not None:
            has = self._server.collection(NODES)[key]["status"]["allocatable"]
            grown = {**has, "cpu": str(min(MAX_NODE_CPUS, int(has["cpu"]) + 1))}
            self._server.update(NODES, key, status={"allocatable": grown, "capacity": grown})

    def _taint_or_untaint(self) -> None:
        """Taint a node for a while, with or without evicting its pods."""
        key = self.any(NODES)
        if key is None:
            return
        if self._server.collection(NODES)[key]["spec"].get("taints"):
            self._server.update(NODES, key, spec={"taints": []})
            return
        effect = self._rng.choice(("NoSchedule", "NoExecute", "PreferNoSchedule"))
        self._server.update(NODES, key, spec={"taints": [{"key": TROUBLE, "effect": effect}]})
        if effect == "NoExecute":
            delay_s = self._rng.uniform(0, EVICTED_WITHIN_S)
            self._loop.call_outside(delay_s, self._evict_intolerant, key[1])

    def _evict_intolerant(self, node_name: str) -> None:
        """Delete the pods that do not tolerate the taint, if it is still there."""
        node = self._server.collection(NODES).get(("", node_name))
        if node is None or not node["spec"].get("taints"):
            return
        for key, pod in list(self._server.collection(PODS).items()):
            if pod["spec"].get("nodeName") == node_name and not pod["spec"].get("tolerations"):
                self._server.terminate(key)

    def _relabel_namespace(self) -> None:
        key = self.any(NAMESPACES)
        if key is not None:
            labels = {"team": self._rng.choice(TEAMS)}
            self._server.update(NAMESPACES, key, metadata={"labels": labels})

    def _shrink_pod(self) -> None:
        """Lower the requests of a pod in place.

        They never grow: a pod that grows on its way to a node may overcommit it whatever a
        scheduler does.
        """
        key = self.any(PODS)
        if key is None:
            return
        (container,) = self._server.collection(PODS)[key]["spec"]["containers"]
        before = container["resources"]["requests"]
        requests = {**before, "cpu": LESS_CPU.get(before["cpu"], "250m")}
        smaller = {**container, "resources": {"requests": requests}}
        self._server.update(PODS, key, spec={"containers": [smaller]})

    def _cordon_or_uncordon(self) -> None:
        key = self.any(NODES)
        if key is not None:
            node = self._server.collection(NODES)[key]
            is_cordoned = node["spec"].get("unschedulable", False)
            self._server.update(NODES, key, spec={"unschedulable": not is_cordoned})

    def _relabel_node(self) -> None:
        key = self.any(NODES)
        if key is not None:
            labels = self._server.collection(NODES)[key]["metadata"]["labels"]
            zone = {"zone": self._rng.choice("xy")}
            self._server.update(NODES, key, metadata={"labels": {**labels, **zone}})

    def _open_gate(self) -> None:
        for key, pod in sorted(self._server.collection(PODS).items()):
            if pod["spec"].get("schedulingGates") and not pod["spec"].get("nodeName"):
                self._server.update(PODS, key, spec={"schedulingGates": []})
                return

    def _bind_by_another(self) -> None:
        """Let another scheduler bind one of our pods to a node with enough room."""
        pending = [
            key
            for key, pod in self._server.collection(PODS).items()
            if not pod["spec"].get("nodeName")
        ]
        node = self.any(NODES)
        if pending and node is not None:
            self._server.bind("foreign", self._rng.choice(pending), node[1])

    def _place_by_another(self) -> None:
        """Let another scheduler bind its own pod to one of our nodes."""
        node = self.any(NODES)
        if node is None:
            return
        self._num_pods += 1
        pod = make_pod(f"pod-{self._num_pods}", "1", scheduler_name="foreign")
        created = self._server.create(PODS, pod)
        key = ("default", created["metadata"]["name"])
        self._server.bind("foreign", key, node[1])

    def _finish_pod(self) -> None:
        key = self.any(PODS)
        if key is not None and self._server.collection(PODS)[key]["spec"].get("nodeName"):
            self._server.update(PODS, key, status={"phase": "Succeeded"})

    def _change_budget(self) -> None:
        key = self.any(BUDGETS)
        if key is not None:
            allowed = {"disruptionsAllowed": self._rng.randint(0, 2)}
            self._server.update(BUDGETS, key, status=allowed)

    def _replace_budget(self) -> None:
        key = self.any(BUDGETS)
        if key is not None:
            app, allowed = self._rng.choice("ab"), self._rng.randint(0, 2)
            self._server.delete(BUDGETS, key)
            self._server.create(BUDGETS, make_budget(key[1], app, allowed))

    def _edit_configuration(self) -> None:
        self.text = draw_text(self._rng, self.extenders)
        self.repair()

    def _break_configuration(self) -> None:
        data = config_map(draw_broken_text(self._rng))["data"]
        if self._server.update(CONFIG_MAPS, CONFIG_MAP_KEY, data=data) is not None:
            self._loop.call_outside(self._rng.uniform(*BROKEN_S), self._edit_configuration)

    def _remove_configuration(self) -> None:
        self._server.delete(CONFIG_MAPS, CONFIG_MAP_KEY)
        self._loop.call_outside(self._rng.uniform(*BROKEN_S), self.repair)


def claim_of(pod: Json) -> str:
    """The name of a pod's claim; empty if it has none."""
    volumes = pod["spec"].get("volumes", ())
    return str(volumes[0]["persistentVolumeClaim"]["claimName"]) if volumes else ""
