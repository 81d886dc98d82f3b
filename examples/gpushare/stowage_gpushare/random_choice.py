"""Random: any node that the pod fits on, and any of its GPUs."""

from hashlib import blake2b

import numpy as np

from stowage.framework.authoring import PodInfo
from stowage_gpushare.devices import GPU, GpuRequest
from stowage_gpushare.sharing import GpuSharing, SharingArgs


class Random(GpuSharing):
    """Scores nothing, so the profile's ``tieBreaking`` of the type Random chooses the node.

    The GPU of a shared pod is drawn from the seed and the pod's UID: a repeated attempt, or another
    replica, draws the same one.
    """

    name = "Random"

    class Args(SharingArgs):
        """``resource`` and ``seed``."""

        seed: int = 0

    def __init__(self, args: Args) -> None:
        super().__init__(args)
        self.seed = args.seed

    def choose(self, pod: PodInfo, request: GpuRequest, row: int) -> list[int]:
        """A fitting GPU; whole GPUs are the untouched ones with the lowest numbers."""
        if request.milli == GPU:
            return super().choose(pod, request, row)
        fitting = np.flatnonzero(request.fits(self.gpus.free[row]))
        if not len(fitting):
            return []
        digest = blake2b(f"{self.seed}/{pod.uid}".encode(), digest_size=8).digest()
        return [int(fitting[int.from_bytes(digest, "big") % len(fitting)])]
