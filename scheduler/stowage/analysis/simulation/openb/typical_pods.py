"""The typical pods of a trace: the most frequent kinds, which make up 95 % of all pods."""

from __future__ import annotations

from collections import Counter

import msgspec

from stowage.analysis.simulation.openb.trace import OpenbTrace

_PERCENT = 95


class TypicalPod(msgspec.Struct, frozen=True):
    """A kind of pods; memory does not count.

    Attributes:
        cpu_milli: Requested CPU.
        gpu_milli: Requested thousandths of each GPU.
        gpus: Number of requested GPUs.
        spec: The models that it accepts, joined by ``|``; empty for any.
        weight: Its share among the typical pods.
    """

    cpu_milli: int
    gpu_milli: int
    gpus: int
    spec: str
    weight: float

    @property
    def models(self) -> tuple[str, ...]:
        """The models that it accepts; none for any."""
        return tuple(self.spec.split("|")) if self.spec else ()


def typical_pods(trace: OpenbTrace) -> tuple[TypicalPod, ...]:
    """The most frequent kinds first, until they make up 95 % of the pods.

    A weight is a quotient of quotients, as in the published program: FGD compares sums of weights
    to the last bit.
    """
    total = len(trace.pods)
    counts = Counter((pod.cpu_milli, pod.gpu_milli, pod.gpus, pod.spec) for pod in trace.pods)
    by_count = sorted(counts.items(), key=lambda item: (item[1], item[0]), reverse=True)
    taken, num_taken = [], 0
    for kind, count in by_count:
        taken.append((kind, count))
        num_taken += count
        if 100 * num_taken >= _PERCENT * total:
            break
    share = num_taken / total
    return tuple(TypicalPod(*kind, count / total / share) for kind, count in taken)
