"""A small trace of the same form as openb's, as CSV files."""

from __future__ import annotations

import random
from collections.abc import Sequence

from stowage.analysis.simulation.openb.trace import OpenbTrace, read_trace

_SHARES = (100, 250, 460, 500, 810)
_MODELS = ("T4", "V100", "G2")


def nodes_csv(seed: int, num: int = 14) -> bytes:
    """Nodes with 0 to 8 GPUs of three models; the columns are in another order than openb's."""
    rand = random.Random(seed)
    lines = ["model,gpu,memory_mib,cpu_milli,sn"]
    for index in range(num):
        gpus = rand.choice((0, 1, 2, 4, 8, 8))
        cpu = rand.choice((16_000, 64_000, 96_000))
        lines.append(f"{rand.choice(_MODELS)},{gpus},{cpu * 4},{cpu},node-{index:04}")
    lines.append("G2,8,393216,96000,node-last")
    return "\n".join(lines).encode()


def pods_csv(seed: int, num: int = 90, *, with_spec: bool = False) -> bytes:
    """Pods of few kinds; a model is asked for by a third of those with a GPU."""
    rand = random.Random(seed)
    lines = ["name,cpu_milli,memory_mib,num_gpu,gpu_milli" + ",gpu_spec" * with_spec]
    for index in range(num):
        gpus = rand.choices((0, 1, 2, 4, 8), (14, 70, 9, 4, 3))[0]
        milli = 1000 * (gpus > 0)
        if gpus == 1 and rand.random() < 0.6:
            milli = rand.choice(_SHARES)
        cpu = rand.choice((1_000, 3_152, 8_000, 11_400)) * max(gpus, 1)
        line = f"pod-{index:04},{cpu},{cpu * 2},{gpus},{milli}"
        if with_spec:
            spec = "|".join(rand.sample(_MODELS, rand.choice((1, 2))))
            line += f",{spec if rand.random() < 0.3 else ''}"
        lines.append(line)
    return "\n".join(lines).encode()


def synthetic_trace(seed: int, *, with_spec: bool = False) -> OpenbTrace:
    """The trace of both files."""
    pods = pods_csv(seed, with_spec=with_spec)
    return read_trace(f"synthetic-{seed}", ("nodes.csv", nodes_csv(seed)), ("pods.csv", pods))


def seeds(num: int) -> Sequence[int]:
    """The first seeds."""
    return range(1, num + 1)
