"""BestFit: the node with the least CPU and GPU left."""

from collections.abc import Iterator

from stowage.framework.authoring import ConfigError, CycleState, Int64Array, NodeView, PodInfo
from stowage_gpushare.devices import whole_scores
from stowage_gpushare.sharing import CycleData, GpuSharing, SharingArgs, free_cpu_milli


class SizedArgs(SharingArgs):
    """The CPU and the GPU thousandths of the largest node, by which amounts are divided."""

    max_cpu_milli: int = 128_000
    max_gpu_milli: int = 8_000

    def validate(self) -> Iterator[ConfigError]:
        """Yield an error for each invalid value."""
        yield from super().validate()
        for field, amount in (
            ("maxCpuMilli", self.max_cpu_milli),
            ("maxGpuMilli", self.max_gpu_milli),
        ):
            if amount < 1:
                yield ConfigError(field, amount, "at least 1")


class BestFit(GpuSharing):
    """Scores a node by how little is left of it with the pod, CPU and GPU counting the same."""

    name = "BestFit"

    class Args(SizedArgs):
        """``resource``, ``maxCpuMilli`` and ``maxGpuMilli``."""

    def __init__(self, args: Args) -> None:
        super().__init__(args)
        self.args = args

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Int64Array:
        """``100 * (1 - (CPU left / largest + GPU left / largest) / 2)``."""
        request = state.read(CycleData).request
        cpu = (free_cpu_milli(nodes) - pod.requests.get("cpu", 0)) / self.args.max_cpu_milli
        idle = nodes.take(self.gpus.of(nodes).idle)
        gpu = (idle - request.total_milli) / self.args.max_gpu_milli
        return whole_scores(100 * (1 - (0.5 * cpu + 0.5 * gpu)))
