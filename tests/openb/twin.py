"""The experiment in plain Python: one node, one GPU and one typical pod at a time."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from stowage.analysis.simulation.openb.arrivals import Arrivals
from stowage.analysis.simulation.openb.trace import OpenbNode, OpenbPod
from stowage.analysis.simulation.openb.typical_pods import TypicalPod


@dataclass
class TwinNode:
    """A node with what is left of it."""

    node: OpenbNode
    rank: int
    cpu: int
    memory: int
    free: list[int]
    kinds: list[str] = field(default_factory=list)

    @property
    def idle(self) -> int:
        return sum(self.free)

    def fits(self, pod: OpenbPod) -> bool:
        model_fits = not pod.spec or self.node.model in pod.spec.split("|")
        enough = sum(left >= pod.gpu_milli for left in self.free if pod.gpus) >= pod.gpus
        has_room = self.cpu >= pod.cpu_milli and self.memory >= pod.memory_mib
        return model_fits and enough and has_room

    def least_free(self, pod: OpenbPod) -> list[int]:
        fitting = [gpu for gpu, left in enumerate(self.free) if left >= pod.gpu_milli]
        return sorted(sorted(fitting, key=lambda gpu: (self.free[gpu], gpu))[: pod.gpus])


def kind_of(pod: OpenbPod) -> str:
    return "shared" if pod.gpu_milli < 1000 else f"{pod.gpus}-gpu"


def fragmentation(cpu: int, free: list[int], model: str, typical: tuple[TypicalPod, ...]) -> float:
    """One accumulator a class, in the order of the typical pods."""
    classes = dict.fromkeys(range(7), 0.0)
    idle = sum(free)
    for pod in typical:
        fitting = [left for left in free if left >= pod.gpu_milli]
        has_cpu, has_gpus = cpu >= pod.cpu_milli, len(fitting) >= pod.gpus
        if pod.gpu_milli == 0:
            classes[4 if has_cpu else 5] += pod.weight * idle
        elif pod.spec and model not in pod.spec.split("|"):
            classes[6] += pod.weight * idle
        elif has_cpu and has_gpus:
            classes[1] += pod.weight * (idle - sum(fitting))
        elif has_gpus:
            classes[3] += pod.weight * idle
        else:
            classes[1 if has_cpu else 0] += pod.weight * idle
    return classes[0] + classes[1] + classes[3] + classes[4] + classes[5] + classes[6]


def best_fit(node: TwinNode, pod: OpenbPod) -> int:
    cpu = 0.5 * ((node.cpu - pod.cpu_milli) / 128_000)
    return int(100 * (1 - (cpu + 0.5 * ((node.idle - pod.total_milli) / 8_000))))


def dot_prod(node: TwinNode, pod: OpenbPod) -> int:
    cpu = (node.cpu / 128_000) * (pod.cpu_milli / 128_000)
    return int(100 * (1 - 0.5 * (cpu + (node.idle / 8_000) * (pod.total_milli / 8_000))))


def gpu_clustering(node: TwinNode, pod: OpenbPod) -> int:
    if not pod.gpus:
        return 0
    score = 25 * (8_000 - node.idle) // 8_000
    if not node.kinds:
        return score + 25
    if kind_of(pod) not in node.kinds:
        return score
    return score + (75 if set(node.kinds) == {kind_of(pod)} else 50)


def gpu_packing(node: TwinNode, pod: OpenbPod) -> int:
    if not pod.gpus:
        return 0
    untouched = node.free.count(1000)
    if untouched == len(node.free):
        return max(33 - untouched, untouched)
    taken = [node.free[gpu] for gpu in node.least_free(pod)]
    newly = taken.count(1000)
    if newly:
        return max(50 - newly, 33)
    return max(100 - sum(left * 100 // 1000 for left in taken) // 10, 50)


def fgd(node: TwinNode, pod: OpenbPod, typical: tuple[TypicalPod, ...]) -> tuple[int, list[int]]:
    """The score and the GPUs of the best placement."""
    whole = [gpu for gpu, left in enumerate(node.free) if left == 1000][: pod.gpus]
    choices = [whole]
    if pod.gpus and pod.gpu_milli < 1000:
        choices = [[gpu] for gpu, left in enumerate(node.free) if left >= pod.gpu_milli]
    before = fragmentation(node.cpu, node.free, node.node.model, typical)
    scored = []
    for gpus in choices:
        free = list(node.free)
        for gpu in gpus:
            free[gpu] -= pod.gpu_milli
        after = fragmentation(node.cpu - pod.cpu_milli, free, node.node.model, typical)
        scored.append((int(1 / (1 + math.exp(-(before - after) / 1000)) * 100), gpus))
    return max(scored, key=lambda each: each[0])


_SCORES = {
    "BestFit": best_fit,
    "DotProd": dot_prod,
    "GpuClustering": gpu_clustering,
    "GpuPacking": gpu_packing,
}


def twin_placements(
    nodes: tuple[OpenbNode, ...],
    typical: tuple[TypicalPod, ...],
    arrivals: Arrivals,
    policy: str,
) -> list[tuple[str, list[int]] | None]:
    """The node and the GPUs of each pod; None for a pod that failed."""
    cluster = [
        TwinNode(
            each, arrivals.ranks[each.name], each.cpu_milli, each.memory_mib, [1000] * each.gpus
        )
        for each in nodes
    ]
    placed: list[tuple[str, list[int]] | None] = []
    for pod in arrivals.pods:
        feasible = [node for node in cluster if node.fits(pod)]
        if not feasible:
            placed.append(None)
            continue
        scored = []
        for node in feasible:
            if policy == "FGD":
                score, gpus = fgd(node, pod, typical)
            else:
                score, gpus = _SCORES[policy](node, pod), node.least_free(pod)
            scored.append((score, -node.rank, node, gpus))
        _, _, node, gpus = max(scored, key=lambda each: each[:2])
        node.cpu -= pod.cpu_milli
        node.memory -= pod.memory_mib
        for gpu in gpus:
            node.free[gpu] -= pod.gpu_milli
        if pod.gpus:
            node.kinds.append(kind_of(pod))
        placed.append((node.node.name, gpus))
    return placed
