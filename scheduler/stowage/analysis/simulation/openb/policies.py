"""The configurations of the six published policies.

The plugins are those of ``examples/gpushare``. A profile has one of them, the filter of CPU and
memory, and that of models; a tie goes to the first node in the order of the run.
"""

from __future__ import annotations

from typing import Any

from stowage.analysis.simulation.openb.objects import MODEL_LABEL, RANK_LABEL, RESOURCE
from stowage.analysis.simulation.openb.typical_pods import TypicalPod

POLICIES = ("Random", "DotProd", "GpuClustering", "GpuPacking", "BestFit", "FGD")
"""From the worst to the best, as published."""

MAX_CPU_MILLI, MAX_GPU_MILLI = 128_000, 8_000
"""The largest node of the trace, by which DotProd, GpuClustering and BestFit divide."""


def configuration_of(policy: str, typical: tuple[TypicalPod, ...], seed: int) -> dict[str, Any]:
    """A KubeSchedulerConfiguration in the shape of its file.

    Args:
        policy: One of `POLICIES`.
        typical: The typical pods, for FGD.
        seed: The seed, for Random.
    """
    args: dict[str, Any] = {"resource": RESOURCE}
    if policy == "FGD":
        args["modelLabel"] = MODEL_LABEL
        args["typicalPods"] = list(map(_typical_pod, typical))
    elif policy == "Random":
        args["seed"] = seed
    elif policy != "GpuPacking":
        args |= {"maxCpuMilli": MAX_CPU_MILLI, "maxGpuMilli": MAX_GPU_MILLI}
    rank = {"name": "NodeRank", "args": {"label": RANK_LABEL}}
    ties = (
        {"type": "Random"} if policy == "Random" else {"type": "FixedOrder", "scorePlugins": [rank]}
    )
    names = ("PrioritySort", "NodeResourcesFit", "NodeAffinity", policy, "DefaultBinder")
    score = [] if policy == "Random" else [{"name": policy, "weight": 1}]
    profile = {
        "schedulerName": "stowage",
        "tieBreaking": ties,
        "plugins": {
            "multiPoint": {
                "disabled": [{"name": "*"}],
                "enabled": [{"name": name} for name in names],
            },
            "preScore": {"disabled": [{"name": "*"}]},
            "score": {"disabled": [{"name": "*"}], "enabled": score},
        },
        "pluginConfig": [{"name": policy, "args": args}],
    }
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile],
    }


def _typical_pod(pod: TypicalPod) -> dict[str, Any]:
    return {
        "cpuMilli": pod.cpu_milli,
        "gpuMilli": pod.gpu_milli,
        "gpus": pod.gpus,
        "models": list(pod.models),
        "weight": pod.weight,
    }
