"""Pod variants as small integers, and what a pod of each variant requests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stowage.state.arrays import Int64Array, extended
from stowage.state.interning import ABSENT, Interner
from stowage.state.nodes.resource_index import ResourceIndex
from stowage.state.pods.pod_class import PodClass
from stowage.state.pods.pod_info import PodInfo

PodVariant = tuple[PodClass, bool]
"""A pod class, and whether the pod is terminating."""


class PodVariants:
    """The variants of some pods; a code is reused when its variant has no pods.

    Args:
        resources: The columns of resources.

    Attributes:
        numbering: Changes when a code may stand for another variant than before.
    """

    __slots__ = ("_interned", "_requests", "_resources", "_version", "numbering")

    def __init__(self, resources: ResourceIndex) -> None:
        self.numbering = 0
        self._interned: Interner[PodVariant] = Interner()
        self._resources = resources
        self._requests = np.zeros((1, 0), dtype=np.int64)
        self._version = -1

    @property
    def values(self) -> Sequence[PodVariant | None]:
        """``code -> variant``; None for a free code."""
        return self._interned.values

    def acquire(self, pod: PodInfo) -> int:
        """The code of a pod's variant; adds a holder."""
        return self._acquire((pod.pod_class, pod.terminating), 1)

    def acquire_all(self, pods: Sequence[PodInfo]) -> Int64Array:
        """``int64[pods]``: the code of each pod's variant; adds a holder for each pod."""
        numbers: dict[PodClass, int] = {}
        of_class = [numbers.setdefault(pod.pod_class, len(numbers)) for pod in pods]
        variants = 2 * np.array(of_class, dtype=np.int64)
        variants += np.array([pod.terminating for pod in pods], dtype=np.bool_)
        classes, holders = list(numbers), np.bincount(variants)
        codes = np.zeros(len(holders), dtype=np.int64)
        for number in np.flatnonzero(holders).tolist():
            variant = (classes[number // 2], bool(number % 2))
            codes[number] = self._acquire(variant, int(holders[number]))
        return codes[variants]

    def _acquire(self, variant: PodVariant, holders: int) -> int:
        is_new = self._interned.get(variant) == ABSENT
        code = self._interned.acquire(variant, holders)
        if is_new:
            self.numbering += 1
            self.requests()
            if code + 1 >= len(self._requests):
                self._requests = extended(self._requests, 2 * code + 2)
            self._requests[code] = 0
            self._note_requests(code, variant[0])
        return code

    def release(self, code: int) -> None:
        """Remove a holder of a variant."""
        self._interned.release(code)

    def release_all(self, codes: Int64Array) -> None:
        """Remove a holder for each of ``int64[pods]`` codes."""
        holders = np.bincount(codes)
        for code in np.flatnonzero(holders).tolist():
            self._interned.release(code, int(holders[code]))

    def priorities(self, codes: Int64Array) -> Int64Array:
        """``int64[pods]``: the priority of each of ``int64[pods]`` variants."""
        values = self._interned.values
        by_code = np.zeros(len(values), dtype=np.int64)
        for code in np.flatnonzero(np.bincount(codes)).tolist():
            variant = values[code]
            by_code[code] = variant[0].priority if variant is not None else 0
        return by_code[codes]

    def requests(self) -> Int64Array:
        """``int64[variants + 1, resources + 3]``: what a pod of each variant uses on its node.

        The columns are those of the resource index, then non-zero cpu milli and memory bytes, then
        1 for the pod itself. The last row, for no pod, is zero.
        """
        if self._version != self._resources.version:
            self._version = self._resources.version
            width = len(self._resources) + 3
            self._requests = np.zeros((len(self._interned) + 1, width), dtype=np.int64)
            for code, variant in enumerate(self._interned.values):
                if variant is not None:
                    self._note_requests(code, variant[0])
        return self._requests

    def _note_requests(self, code: int, pod_class: PodClass) -> None:
        for column, amount in self._resources.requests(pod_class).items:
            self._requests[code, column] = amount
        self._requests[code, -3:] = pod_class.nonzero_cpu_milli, pod_class.nonzero_memory_bytes, 1
