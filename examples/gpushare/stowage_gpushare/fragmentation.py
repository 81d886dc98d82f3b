"""How much of the idle GPUs of nodes the typical pods cannot use: the fragmentation of FGD.

For a node and a typical pod of the weight w: if the pod fits by GPU and CPU, the GPUs that are too
full for it are lost, w times what they have left; if not, w times all that is idle is lost. Of a
typical pod without GPUs all that is idle is lost. The fragmentation of the node is the sum.

Sums are those of the published program to the last bit: it adds up the losses of each class (too
few GPUs and CPU, GPUs, CPU, no GPUs wanted, neither those nor CPU, another model) in the order of
the typical pods, and then the classes. Scores are cut to whole numbers, so the last bit counts.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from stowage.framework.authoring import BoolArray, Int64Array, PluginArgs
from stowage_gpushare.devices import GPU, FloatArray

Column = NDArray[np.float64]


class TypicalPod(PluginArgs):
    """A kind of pods that is expected to come.

    ``cpuMilli``, ``gpuMilli`` of each of ``gpus`` GPUs, the ``models`` of GPUs it accepts (none for
    any), and its ``weight`` among the typical pods, which sum to 1.
    """

    cpu_milli: int = 0
    gpu_milli: int = 0
    gpus: int = 0
    models: tuple[str, ...] = ()
    weight: float = 0.0


class Fragmentation:
    """Computes the fragmentation for one set of typical pods.

    Arrays are ``[pods, nodes]``, of the typical pods with GPUs; the others count by their CPU only.

    Args:
        typical: The typical pods, in the order of the sums.

    Attributes:
        fits: ``int64[pods, 1001]``: whether a GPU with 0..1000 free thousandths is enough.
        lost: ``int64[pods, 1001]``: those thousandths where it is not.
    """

    def __init__(self, typical: Sequence[TypicalPod]) -> None:
        with_gpu = [pod for pod in typical if pod.gpu_milli]
        self._cpu = _column([pod.cpu_milli for pod in with_gpu])
        self._num = _column([pod.gpus for pod in with_gpu]).astype(np.int64)
        self._weight = _column([pod.weight for pod in with_gpu])
        self._models = [frozenset(pod.models) for pod in with_gpu]
        others = [pod for pod in typical if not pod.gpu_milli]
        self._cpu_of_others = _column([pod.cpu_milli for pod in others])
        self._weight_of_others = _column([pod.weight for pod in others])
        milli = _column([pod.gpu_milli for pod in with_gpu])
        free = np.arange(GPU + 1)
        self.fits = (free >= milli).astype(np.int64)
        self.lost = np.where(self.fits, 0, free)

    @property
    def num_pods(self) -> int:
        """Number of typical pods with GPUs."""
        return len(self._models)

    @property
    def knows_models(self) -> bool:
        """Whether a typical pod accepts some models only."""
        return any(self._models)

    def accepts(self, model: str) -> BoolArray:
        """``bool[pods]``: the typical pods that accept a model."""
        return np.array([not models or model in models for models in self._models], dtype=np.bool_)

    def amount(
        self,
        cpu: Int64Array,
        idle: Int64Array,
        fitting: Int64Array,
        lost: Int64Array,
        accepted: BoolArray | None = None,
    ) -> FloatArray:
        """``float64[nodes]``: the fragmentation, in thousandths of a GPU.

        Args:
            cpu: ``int64[nodes]``: free CPU.
            idle: ``int64[nodes]``: free thousandths.
            fitting: ``int64[pods, nodes]``: number of GPUs that are free enough for each pod.
            lost: ``int64[pods, nodes]``: free thousandths of the GPUs that are not.
            accepted: ``bool[pods, nodes]``: the pods that accept the node's model; None for all.
        """
        if len(cpu) == 1:
            # numpy adds up a single column in another order than several.
            twice = np.zeros(2, dtype=np.int64)
            pair = None if accepted is None else accepted[:, twice]
            return self.amount(cpu[twice], idle[twice], fitting[:, twice], lost[:, twice], pair)[:1]
        # Sums go over the rows of C-ordered arrays, one row after the other.
        fitting, lost = np.ascontiguousarray(fitting), np.ascontiguousarray(lost)
        all_idle = self._weight * idle
        has_cpu = cpu >= self._cpu
        has_gpus = fitting >= self._num
        excluded = 0.0
        if accepted is not None:
            excluded = np.where(accepted, 0.0, all_idle).sum(axis=0)
            all_idle = np.where(accepted, all_idle, 0.0)
            lost = np.where(accepted, lost, 0)
        by_gpus = np.where(has_gpus, self._weight * lost, all_idle)
        lacks_gpus = np.where(has_cpu, by_gpus, 0.0).sum(axis=0)
        without_cpu = np.where(has_cpu, 0.0, all_idle)
        lacks_cpu = np.where(has_gpus, without_cpu, 0.0)
        lacks_both = (without_cpu - lacks_cpu).sum(axis=0)
        unwanted = self._weight_of_others * idle
        runs = cpu >= self._cpu_of_others
        none_wanted = np.where(runs, unwanted, 0.0).sum(axis=0)
        neither = np.where(runs, 0.0, unwanted).sum(axis=0)
        total: FloatArray = lacks_both + lacks_gpus + lacks_cpu.sum(axis=0)
        return total + none_wanted + neither + excluded


def _column(values: Sequence[float]) -> Column:
    return np.array(values, dtype=np.float64).reshape(-1, 1)
