"""What happens in a simulated cluster's life, drawn from a seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from tests.simulation.loop import VirtualLoop
from tests.simulation.network import FAULTS, Network
from tests.simulation.replica import SCHEDULER_NAME, Replica
from tests.simulation.server import NAMESPACES, NODES, PODS, Change, Json, ModelServer

STORMY_S = 60.0
"""How long things go wrong."""

NUM_EVENTS = 70
NUM_NODES = (2, 6)
NUM_REPLICAS = (1, 3)
NODE_CPUS = 4
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"

Action: TypeAlias = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Emphasis:
    """What a plan is to have more of.

    Attributes:
        faults: Kinds of faults with the probability they have as long as things go wrong.
        often: Names of actions, ten times as likely as usual.
    """

    faults: Mapping[str, float] = field(default_factory=dict)
    often: frozenset[str] = frozenset()


class Plan:
    """Draws what happens, and has it happen.

    Args:
        loop: Whose clock counts.
        server: Where things happen.
        network: What gets worse and better.
        rng: Draws everything.
        emphasis: What there is more of.

    Attributes:
        replicas: The schedulers.
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
        self._server = server
        self._network = network
        self._rng = rng
        self._num_pods = 0
        self.replicas: Sequence[Replica] = [
            Replica(f"replica-{index}", loop, network, random.Random(rng.random()))
            for index in range(rng.randint(*NUM_REPLICAS))
        ]
        self._actions: Sequence[tuple[int, Action]] = (
            (12, self._create_pod),
            (5, self._create_burst),
            (5, self._delete_pod),
            (4, self._delete_many),
            (3, self._recreate_pod),
            (2, self._remove_node),
            (2, self._cordon_or_uncordon),
            (2, self._relabel_node),
            (3, self._bind_by_another),
            (2, self._finish_pod),
            (6, self._change_weather),
            (2, self._be_down),
            (2, self._restart_server),
            (4, self._kill),
            (3, self._stop),
            (2, self._retire),
        )

    def begin(self) -> None:
        """Make the first objects, start the replicas, and set all dates."""
        self._server.subscribe(self._kubelet)
        self._server.create(NAMESPACES, {"metadata": {"name": "default"}})
        for index in range(self._rng.randint(*NUM_NODES)):
            self._server.create(NODES, _node(f"node-{index}"))
        for _ in range(self._rng.randint(0, 10)):
            self._create_pod()
        for replica in self.replicas:
            self._loop.call_outside(self._rng.uniform(0, 3), replica.start)
        self._worsen()
        actions = [action for _, action in self._actions]
        weights = [
            weight * (10 if action.__name__.strip("_") in self._emphasis.often else 1)
            for weight, action in self._actions
        ]
        for _ in range(NUM_EVENTS):
            action = self._rng.choices(actions, weights)[0]
            self._loop.call_outside(self._rng.uniform(0, STORMY_S), self._do, action)
        self._loop.call_outside(STORMY_S, self._network.weather.calm)

    def _do(self, action: Action) -> None:
        self.log.append(f"{self._loop.time():8.3f} {action.__name__.removeprefix('_')}")
        action()

    def _kubelet(self, change: Change) -> None:
        """Run what was bound; refuse what has no room is the auditor's to see."""
        if change.path != PODS or change.after is None:
            return
        pod = change.after
        if not pod["spec"].get("nodeName"):
            return
        key, uid = (pod["metadata"]["namespace"], pod["metadata"]["name"]), pod["metadata"]["uid"]
        if pod["metadata"].get("deletionTimestamp"):
            self._loop.call_outside(self._rng.uniform(0.01, 5.0), self._end_pod, key, uid)
        elif pod["status"].get("phase") == "Pending":
            self._loop.call_outside(self._rng.uniform(0.01, 0.5), self._run_pod, key, uid)

    def _run_pod(self, key: tuple[str, str], uid: str) -> None:
        pod = self._server.collection(PODS).get(key)
        if pod is None or pod["metadata"]["uid"] != uid:
            return
        if pod["status"]["phase"] == "Pending":
            self._server.update(PODS, key, status={"phase": "Running"})

    def _end_pod(self, key: tuple[str, str], uid: str) -> None:
        pod = self._server.collection(PODS).get(key)
        if pod is not None and pod["metadata"]["uid"] == uid:
            self._server.delete(PODS, key)

    def _create_pod(self) -> None:
        self._num_pods += 1
        self._server.create(PODS, self._pod(f"pod-{self._num_pods}"))

    def _create_burst(self) -> None:
        for _ in range(self._rng.randint(4, 12)):
            self._create_pod()

    def _pod(self, name: str) -> Json:
        rng = self._rng
        cpu = rng.choice(("500m", "1", "1", "2", "3"))
        spec: Json = {
            "schedulerName": SCHEDULER_NAME,
            "priority": rng.choice((0, 0, 0, 10, 100)),
            "containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}],
        }
        if rng.random() < 0.1:
            spec["schedulingGates"] = [{"name": "wait"}]
        app = rng.choice("ab")
        if rng.random() < 0.15:
            spec["affinity"] = {"podAntiAffinity": {REQUIRED: [_term(app)]}}
        elif rng.random() < 0.15:
            spec["topologySpreadConstraints"] = [
                {"maxSkew": 2, "whenUnsatisfiable": "DoNotSchedule", **_term(app)}
            ]
        metadata = {"namespace": "default", "name": name, "labels": {"app": app}}
        return {"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}

    def _delete_pod(self) -> None:
        key = self._any(PODS)
        if key is not None:
            self._server.delete(PODS, key)

    def _delete_many(self) -> None:
        """Make room at one go."""
        for _ in range(10):
            self._delete_pod()

    def _recreate_pod(self) -> None:
        key = self._any(PODS)
        if key is not None:
            self._server.delete(PODS, key)
            self._server.create(PODS, self._pod(key[1]))

    def _remove_node(self) -> None:
        """Take a node away, and bring it back under its name, its pods gone or still there."""
        key = self._any(NODES)
        if key is None:
            return
        self._server.delete(NODES, key)
        if self._rng.random() < 0.5:
            for pod_key, pod in list(self._server.collection(PODS).items()):
                if pod["spec"].get("nodeName") == key[1]:
                    self._server.delete(PODS, pod_key)
        self._loop.call_outside(self._rng.uniform(0, 10), self._return_node, key[1])

    def _return_node(self, name: str) -> None:
        if ("", name) not in self._server.collection(NODES):
            self._server.create(NODES, _node(name))

    def _cordon_or_uncordon(self) -> None:
        key = self._any(NODES)
        if key is not None:
            node = self._server.collection(NODES)[key]
            is_cordoned = node["spec"].get("unschedulable", False)
            self._server.update(NODES, key, spec={"unschedulable": not is_cordoned})

    def _relabel_node(self) -> None:
        key = self._any(NODES)
        if key is not None:
            labels = self._server.collection(NODES)[key]["metadata"]["labels"]
            zone = {"zone": self._rng.choice("xy")}
            self._server.update(NODES, key, metadata={"labels": {**labels, **zone}})

    def _bind_by_another(self) -> None:
        """Another scheduler binds one of our pods, where there is room by its own reckoning."""
        pending = [
            key
            for key, pod in self._server.collection(PODS).items()
            if not pod["spec"].get("nodeName")
        ]
        node = self._any(NODES)
        if pending and node is not None:
            self._server.bind("foreign", self._rng.choice(pending), node[1])

    def _finish_pod(self) -> None:
        key = self._any(PODS)
        if key is not None and self._server.collection(PODS)[key]["spec"].get("nodeName"):
            self._server.update(PODS, key, status={"phase": "Succeeded"})

    def _change_weather(self) -> None:
        weather = self._network.weather
        weather.calm()
        self._worsen()
        for fault in self._rng.sample(FAULTS, self._rng.randint(0, 4)):
            setattr(weather, fault, self._rng.choice((0.02, 0.1, 0.3)))

    def _worsen(self) -> None:
        for fault, probability in self._emphasis.faults.items():
            setattr(self._network.weather, fault, probability)

    def _be_down(self) -> None:
        """The server is away for a while."""
        self._network.weather.is_down = True
        self._network.cut_all()
        self._loop.call_outside(self._rng.uniform(0.5, 12), self._be_up)

    def _be_up(self) -> None:
        self._network.weather.is_down = False

    def _restart_server(self) -> None:
        """End every watch; with the history lost they cannot go on where they were."""
        self._network.cut_all()
        if self._rng.random() < 0.7:
            self._server.compacted = self._server.revision

    def _kill(self) -> None:
        self._rng.choice(self.replicas).kill()

    def _stop(self) -> None:
        self._rng.choice(self.replicas).stop_for(self._rng.uniform(0.5, 25))

    def _retire(self) -> None:
        self._rng.choice(self.replicas).retire()

    def _any(self, path: str) -> tuple[str, str] | None:
        keys = sorted(self._server.collection(path))
        return self._rng.choice(keys) if keys else None


def _term(app: str) -> Json:
    selector = {"matchLabels": {"app": app}}
    return {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}


def _node(name: str) -> Json:
    allocatable = {"cpu": str(NODE_CPUS), "memory": "8Gi", "pods": "10"}
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": {},
        "status": {"allocatable": allocatable, "capacity": allocatable},
    }
