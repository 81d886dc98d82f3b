"""GpuPacking: GPUs in use first, then untouched GPUs of nodes in use, then idle nodes."""

import numpy as np

from stowage.framework.authoring import CycleState, Int64Array, NodeView, PodInfo
from stowage_gpushare.devices import GPU
from stowage_gpushare.sharing import CycleData, GpuSharing

_NONE = 2 * GPU
"""More than any GPU has."""


class GpuPacking(GpuSharing):
    """Prefers nodes on which the pod touches no untouched GPU."""

    name = "GpuPacking"

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Int64Array:
        """50..100 on GPUs in use, 33..49 on untouched ones of a used node, less on an idle node."""
        request = state.read(CycleData).request
        gpus = self.gpus.of(nodes)
        if not request.num or request.num > gpus.free.shape[1]:
            return np.zeros(len(nodes), dtype=np.int64)
        free = nodes.take(gpus.free)
        fitting = np.where(request.fits(free), free, _NONE)
        fitting.sort(axis=1)
        taken = fitting[:, : request.num]
        untouched = (taken == GPU).sum(axis=1)
        left = (taken * 100 // GPU).sum(axis=1) // 10
        in_use = np.where(untouched > 0, np.maximum(50 - untouched, 33), np.maximum(100 - left, 50))
        whole = (free == GPU).sum(axis=1)
        is_idle = whole == nodes.take(gpus.num)
        return np.where(is_idle, np.maximum(33 - whole, whole), in_use)
