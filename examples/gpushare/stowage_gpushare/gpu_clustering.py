"""GpuClustering: pods that request GPUs alike go to the same nodes."""

import numpy as np

from stowage.framework.authoring import CycleState, Int64Array, NodeView, PodInfo
from stowage_gpushare.best_fit import SizedArgs
from stowage_gpushare.devices import whole_scores
from stowage_gpushare.sharing import CycleData, GpuSharing


class GpuClustering(GpuSharing):
    """Prefers nodes with pods of the same kind: shared, or the same number of whole GPUs."""

    name = "GpuClustering"

    class Args(SizedArgs):
        """``resource`` and ``maxGpuMilli``; ``maxCpuMilli`` has no effect."""

    def __init__(self, args: Args) -> None:
        super().__init__(args)
        self.args = args

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Int64Array:
        """75 beside its kind only, 50 beside others too, 25 alone; up to 25 more for used GPUs."""
        request = state.read(CycleData).request
        gpus = self.gpus.of(nodes)
        if not request.num or request.kind >= gpus.pods.shape[1]:
            return np.zeros(len(nodes), dtype=np.int64)
        pods = nodes.take(gpus.pods)
        same = pods[:, request.kind]
        others = pods.sum(axis=1) - same
        beside = np.select([(same > 0) & (others == 0), same > 0, others == 0], [75, 50, 25], 0)
        used = self.args.max_gpu_milli - nodes.take(gpus.idle)
        return whole_scores(beside + 25 * used // self.args.max_gpu_milli)
