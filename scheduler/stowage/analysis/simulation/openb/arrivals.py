"""The order in which pods arrive, and the order of nodes that breaks ties."""

from __future__ import annotations

from typing import cast

import msgspec

from stowage.analysis.simulation.openb.go_random import GoRandom
from stowage.analysis.simulation.openb.trace import GPU, OpenbPod, OpenbTrace

_LOAD_PERCENT = 130
#: Numbers that other parts of the published program draw before and after the arrivals.
_DRAWN_BEFORE, _DRAWN_AFTER = 1, 10


class Arrivals(msgspec.Struct, frozen=True):
    """What a seed determines.

    Attributes:
        pods: In the order of their arrival; a repeated pod has a name of its own.
        ranks: Node -> its place in the order that breaks ties.
        random: What is left of the random numbers; a policy may draw from it.
    """

    pods: list[OpenbPod]
    ranks: dict[str, int]
    random: GoRandom


def draw_arrivals(trace: OpenbTrace, seed: int) -> Arrivals:
    """The arrivals of a trace by a seed."""
    random = GoRandom(seed)
    for _ in range(_DRAWN_BEFORE):
        random.next()
    base = sorted(trace.pods, key=lambda pod: pod.name)
    pods = list(base)
    random.shuffle(cast("list[object]", pods))
    _inflate(pods, base, trace.num_gpus * GPU * _LOAD_PERCENT / 100, random)
    for _ in range(_DRAWN_AFTER):
        random.next()
    names = sorted(node.name for node in trace.nodes)
    ranks = dict(zip(names, random.permutation(len(names)), strict=True))
    return Arrivals(pods, ranks, random)


def _inflate(
    pods: list[OpenbPod], base: list[OpenbPod], target_milli: float, random: GoRandom
) -> None:
    """Repeat or drop random pods until they request `target_milli`."""
    requested = sum(pod.total_milli for pod in pods)
    if requested >= target_milli:
        while requested > target_milli:
            requested -= pods.pop(random.draw(len(pods))).total_milli
        return
    clones = 0
    # A pod with several GPUs may exceed the target: the next draw ends the loop, even by a pod
    # without GPUs.
    while requested + (pod := base[random.draw(len(base))]).gpu_milli <= target_milli:
        clones += 1
        pods.append(msgspec.structs.replace(pod, name=f"{pod.name}-clone-{clones}"))
        requested += pod.total_milli
