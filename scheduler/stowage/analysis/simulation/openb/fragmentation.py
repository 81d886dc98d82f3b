"""The fragmentation of all nodes, kept up to date as pods come."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from stowage.analysis.simulation.openb.trace import GPU, OpenbNode, OpenbPod
from stowage.analysis.simulation.openb.typical_pods import TypicalPod

_Int64Array = NDArray[np.int64]
_BoolArray = NDArray[np.bool_]
_FloatArray = NDArray[np.float64]


class Overcommitted(ValueError):  # noqa: N818 - it names the finding
    """A pod was placed where it does not fit."""


class Fragmentation:
    """How much of the idle GPUs the typical pods cannot use.

    For each typical pod of the weight w a node loses w times its idle thousandths if the pod does
    not fit or wants no GPU, else w times those of the GPUs that are too full for it. A placement
    changes one node, and costs the same whatever the number of nodes.

    Args:
        nodes: The nodes, empty.
        typical: The typical pods.

    Attributes:
        amounts: ``float64[nodes]``: fragmented thousandths.
        idle: ``int64[nodes]``: idle thousandths.
    """

    def __init__(self, nodes: Sequence[OpenbNode], typical: Sequence[TypicalPod]) -> None:
        most = max((node.gpus for node in nodes), default=0)
        gpus = np.array([node.gpus for node in nodes], dtype=np.int64)
        self._rows = {node.name: row for row, node in enumerate(nodes)}
        self._cpu: _Int64Array = np.array([node.cpu_milli for node in nodes], dtype=np.int64)
        self._free: _Int64Array = np.where(np.arange(most) < gpus[:, None], GPU, 0)
        self._cpu_wanted = np.array([pod.cpu_milli for pod in typical], dtype=np.int64)
        self._milli = np.array([pod.gpu_milli for pod in typical], dtype=np.int64)
        self._num = np.array([pod.gpus for pod in typical], dtype=np.int64)
        self._weight = np.array([pod.weight for pod in typical], dtype=np.float64)
        by_model = {model: _accepts(typical, model) for model in {node.model for node in nodes}}
        self._accepts: list[_BoolArray] = [by_model[node.model] for node in nodes]
        self.idle: _Int64Array = self._free.sum(axis=1)
        self.amounts: _FloatArray = np.array([self._amount(row) for row in range(len(nodes))])

    def place(self, pod: OpenbPod, node_name: str, gpus: Sequence[int]) -> None:
        """Take what a pod requests from its node.

        Args:
            pod: The pod.
            node_name: The node.
            gpus: The numbers of its GPUs on the node.

        Raises:
            Overcommitted: The pod does not fit there, or has another number of GPUs.
        """
        row = self._rows[node_name]
        free = self._free[row]
        if len(set(gpus)) != pod.gpus or any(
            not 0 <= gpu < len(free) or free[gpu] < pod.gpu_milli for gpu in gpus
        ):
            text = f"{pod.gpus} GPUs with {pod.gpu_milli} thousandths"
            raise Overcommitted(f"{pod.name} wants {text}, and got {list(gpus)} of {node_name}")
        if self._cpu[row] < pod.cpu_milli:
            raise Overcommitted(f"{pod.name} has no room for its CPU on {node_name}")
        self._cpu[row] -= pod.cpu_milli
        free[list(gpus)] -= pod.gpu_milli
        self.idle[row] -= pod.total_milli
        self.amounts[row] = self._amount(row)

    def _amount(self, row: int) -> float:
        free, idle = self._free[row], self.idle[row]
        too_full = free < self._milli[:, None]
        enough = len(free) - too_full.sum(axis=1) >= self._num
        fits = enough & (self._cpu[row] >= self._cpu_wanted) & self._accepts[row]
        lost = np.where(too_full, free, 0).sum(axis=1)
        return float(self._weight @ np.where(fits, lost, idle))


def _accepts(typical: Sequence[TypicalPod], model: str) -> _BoolArray:
    """``bool[typical pods]``: those that want GPUs and accept a model."""
    accepted = [pod.gpus > 0 and (not pod.spec or model in pod.models) for pod in typical]
    return np.array(accepted, dtype=np.bool_)
