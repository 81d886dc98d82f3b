"""DotProd: the node whose free amounts, multiplied by the requested ones, are least."""

from stowage.framework.authoring import CycleState, Int64Array, NodeView, PodInfo
from stowage_gpushare.best_fit import SizedArgs
from stowage_gpushare.devices import whole_scores
from stowage_gpushare.sharing import CycleData, GpuSharing, free_cpu_milli


class DotProd(GpuSharing):
    """Scores a node by the dot product of what is free and what the pod requests."""

    name = "DotProd"

    class Args(SizedArgs):
        """``resource``, ``maxCpuMilli`` and ``maxGpuMilli``."""

    def __init__(self, args: Args) -> None:
        super().__init__(args)
        self.args = args

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Int64Array:
        """``100 * (1 - (free CPU * CPU + idle GPU * GPU) / 2)``, all divided by the largest."""
        request = state.read(CycleData).request
        most_cpu, most_gpu = self.args.max_cpu_milli, self.args.max_gpu_milli
        cpu = (free_cpu_milli(nodes) / most_cpu) * (pod.requests.get("cpu", 0) / most_cpu)
        idle = nodes.take(self.gpus.of(nodes).idle)
        gpu = (idle / most_gpu) * (request.total_milli / most_gpu)
        return whole_scores(100 * (1 - 0.5 * (cpu + gpu)))
