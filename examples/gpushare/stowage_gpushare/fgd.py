"""FGD, fragmentation gradient descent: the placement after which least is fragmented."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from stowage.framework.authoring import (
    BoolArray,
    ConfigError,
    CycleState,
    Int64Array,
    NodeView,
    PodInfo,
    Snapshot,
)
from stowage_gpushare.devices import GPU, FloatArray, GpuColumns, GpuRequest
from stowage_gpushare.fragmentation import Fragmentation, TypicalPod
from stowage_gpushare.sharing import CycleData, GpuSharing, SharingArgs


@dataclass(slots=True)
class NodeState:
    """What the fragmentation of some nodes depends on; see `Fragmentation.amount`.

    The last axis of each array is the nodes; axes before it are the typical pods.
    """

    cpu: Int64Array
    idle: Int64Array
    fitting: Int64Array
    lost: Int64Array
    accepted: BoolArray | None
    amount: FloatArray

    def of(self, rows: Int64Array | slice) -> "NodeState":
        """The state of the nodes of ``int64[n]`` `rows`, which may be listed several times."""
        accepted = None if self.accepted is None else self.accepted[:, rows]
        return NodeState(
            self.cpu[rows],
            self.idle[rows],
            self.fitting[:, rows],
            self.lost[:, rows],
            accepted,
            self.amount[rows],
        )


class FGD(GpuSharing):
    """Scores a node by how much the pod would lessen its fragmentation."""

    name = "FGD"

    class Args(SharingArgs):
        """``resource``, ``typicalPods``, and the label ``modelLabel`` with a node's GPU model."""

        typical_pods: tuple[TypicalPod, ...] = ()
        model_label: str = "gpushare.example.com/model"

        def validate(self) -> Iterator[ConfigError]:
            """Yield an error for each invalid value."""
            yield from super().validate()
            if not self.typical_pods:
                yield ConfigError("typicalPods", self.typical_pods, "at least one pod")
            for index, pod in enumerate(self.typical_pods):
                if not 0 <= pod.gpu_milli <= GPU:
                    field = f"typicalPods[{index}].gpuMilli"
                    yield ConfigError(field, pod.gpu_milli, f"0 to {GPU}")

    def __init__(self, args: Args) -> None:
        super().__init__(args)
        self._label = args.model_label
        self._fragmentation = Fragmentation(args.typical_pods)
        self._state = self._computed(GpuColumns(args.resource), np.empty(0, dtype=np.int64), None)

    def update(self, snapshot: Snapshot) -> None:
        """Compute the changed nodes' part of the sums again."""
        rows = self.gpus.update(snapshot)
        if not len(rows):
            return
        changed = self._state_of(snapshot, self.gpus, rows)
        if len(rows) == snapshot.num_rows:
            self._state = changed
            return
        state = self._state
        state.cpu[rows], state.idle[rows] = changed.cpu, changed.idle
        state.fitting[:, rows], state.lost[:, rows] = changed.fitting, changed.lost
        state.amount[rows] = changed.amount
        if state.accepted is not None:
            state.accepted[:, rows] = changed.accepted

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Int64Array:
        """``100 / (1 + exp(-decrease / 1000))``, cut to whole numbers, of the best placement."""
        request = state.read(CycleData).request
        gpus = self.gpus.of(nodes)
        if gpus is self.gpus:
            known, free = self._state.of(nodes.index), nodes.take(gpus.free)
        else:
            known = self._state_of(nodes.snapshot, gpus, nodes.rows)
            free = gpus.free[nodes.rows]
        if request.num and request.milli < GPU:
            return self._score_shared(pod, request, known, free)[0]
        return self._score_whole(pod, request, known)

    def choose(self, pod: PodInfo, request: GpuRequest, row: int) -> list[int]:
        """The GPU with the best score, on ties the lowest; whole GPUs by their numbers."""
        if request.milli == GPU:
            return super().choose(pod, request, row)
        only = np.array([row])
        known = self._state.of(only)
        # The pod is assumed on the node; the state is that before.
        _, gpu = self._score_shared(pod, request, known, self.gpus.free[only])
        return [int(gpu[0])] if gpu[0] >= 0 else []

    def _score_whole(self, pod: PodInfo, request: GpuRequest, known: NodeState) -> Int64Array:
        """``int64[nodes]``: with the first untouched GPUs taken, or none."""
        after = self._fragmentation.amount(
            known.cpu - pod.requests.get("cpu", 0),
            known.idle - request.total_milli,
            # An untouched GPU fits every pod; a full one fits none and loses nothing.
            known.fitting - request.num,
            known.lost,
            known.accepted,
        )
        return _score(known.amount - after)

    def _score_shared(
        self, pod: PodInfo, request: GpuRequest, known: NodeState, free: Int64Array
    ) -> tuple[Int64Array, Int64Array]:
        """``int64[nodes]`` the best score over the fitting GPUs, and that GPU, -1 if none fits."""
        nodes, gpus = _candidates(request, free)
        best = np.zeros(len(free), dtype=np.int64)
        chosen = np.full(len(free), -1, dtype=np.int64)
        if not len(nodes):
            return best, chosen
        frag, before = self._fragmentation, known.of(nodes)
        old = free[nodes, gpus]
        new = old - request.milli
        after = frag.amount(
            before.cpu - pod.requests.get("cpu", 0),
            before.idle - request.milli,
            before.fitting + frag.fits.take(new, axis=1) - frag.fits.take(old, axis=1),
            before.lost + frag.lost.take(new, axis=1) - frag.lost.take(old, axis=1),
            before.accepted,
        )
        scores = _score(before.amount - after)
        starts = np.flatnonzero(np.diff(nodes, prepend=-1))
        owners = nodes[starts]
        best[owners] = np.maximum.reduceat(scores, starts)
        # Written from the last GPU to the first, so the lowest of the best ones stays.
        winners = np.flatnonzero(scores == best[nodes])[::-1]
        chosen[nodes[winners]] = gpus[winners]
        return best, chosen

    def _state_of(self, snapshot: Snapshot, gpus: GpuColumns, rows: Int64Array) -> NodeState:
        cpu = snapshot.resources.index_of("cpu")
        free_cpu = snapshot.allocatable[rows, cpu] - snapshot.requested[rows, cpu]
        accepted = None
        if self._fragmentation.knows_models:
            column = snapshot.label_column(self._label)
            models = [column.value(code) or "" for code in column.codes[rows].tolist()]
            accepted = np.array([self._fragmentation.accepts(each) for each in models]).T
        return self._computed(gpus, rows, accepted, free_cpu)

    def _computed(
        self,
        gpus: GpuColumns,
        rows: Int64Array,
        accepted: BoolArray | None,
        cpu: Int64Array | None = None,
    ) -> NodeState:
        frag, free = self._fragmentation, gpus.free[rows]
        free_cpu = np.empty(0, dtype=np.int64) if cpu is None else cpu
        idle = gpus.idle[rows]
        fitting, lost = frag.fits[:, free].sum(axis=2), frag.lost[:, free].sum(axis=2)
        amount = frag.amount(free_cpu, idle, fitting, lost, accepted)
        return NodeState(free_cpu, idle, fitting, lost, accepted, amount)


def _candidates(request: GpuRequest, free: Int64Array) -> tuple[Int64Array, Int64Array]:
    """The node and the GPU of each placement to try, by node and GPU.

    Untouched GPUs of a node are alike: only the first is tried.
    """
    tried = request.fits(free)
    untouched = free == GPU
    tried &= ~(untouched & (untouched.cumsum(axis=1) > 1))
    return np.nonzero(tried)


def _score(decrease: FloatArray) -> Int64Array:
    return (1 / (1 + np.exp(-decrease / 1000)) * 100).astype(np.int64)
