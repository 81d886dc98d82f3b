"""The first and the later arrivals of a workload or trace, as ones of their own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import takewhile

import msgspec
from msgspec.structs import replace

from stowage.analysis.simulation.openb.trace import OpenbTrace
from stowage.analysis.simulation.timeline import (
    Happening,
    PodArrives,
    PodLeaves,
    Timeline,
    Workload,
)


class FirstArrivals(msgspec.Struct, frozen=True):
    """What happens in the first part of the time of a workload.

    Attributes:
        workload: The whole.
        share: The part, between 0 and 1.
    """

    workload: Workload
    share: float

    @property
    def name(self) -> str:
        """The name of the part in results."""
        return f"{self.workload.name}, first {self.share:.0%}"

    def timeline(self, seed: int) -> Timeline:
        """See `Workload`."""
        whole = self.workload.timeline(seed)
        cut_s = whole.expected_s * self.share
        return replace(
            whole,
            happenings=takewhile(lambda each: each.at_s < cut_s, whole.happenings),
            ends_at_s=None if whole.ends_at_s is None else cut_s,
            expected_s=cut_s,
        )


class LaterArrivals(msgspec.Struct, frozen=True):
    """What happens after the first part, with the nodes as they are by then.

    The pods of the first part do not arrive, except those that have a node from the start.

    Attributes:
        workload: The whole.
        share: The first part, between 0 and 1.
    """

    workload: Workload
    share: float

    @property
    def name(self) -> str:
        """The name of the part in results."""
        return f"{self.workload.name}, last {1 - self.share:.0%}"

    def timeline(self, seed: int) -> Timeline:
        """See `Workload`; it starts at 0."""
        whole = self.workload.timeline(seed)
        cut_s = whole.expected_s * self.share
        ends = whole.ends_at_s
        return replace(
            whole,
            happenings=_later(whole.happenings, cut_s),
            ends_at_s=None if ends is None else max(0.0, ends - cut_s),
            expected_s=whole.expected_s - cut_s,
        )


def _later(happenings: Iterable[Happening], cut_s: float) -> Iterator[Happening]:
    left_out: set[str] = set()
    for each in happenings:
        if isinstance(each, PodArrives) and each.at_s < cut_s and not each.pod.spec.node_name:
            left_out.add(f"{each.pod.metadata.namespace}/{each.pod.metadata.name}")
        elif not (isinstance(each, PodLeaves) and each.key in left_out):
            yield replace(each, at_s=max(0.0, each.at_s - cut_s))


def openb_parts(trace: OpenbTrace, share: float) -> tuple[OpenbTrace, OpenbTrace]:
    """The first and the later pods of a trace, each with all nodes.

    A run repeats the pods of its part until they have requested as much as those of the whole.

    Args:
        trace: The whole.
        share: The first part, between 0 and 1.

    Raises:
        ValueError: No pod of a part requests a GPU, so it cannot be repeated up to any load.
    """
    cut = round(len(trace.pods) * share)
    parts = (
        replace(trace, name=f"{trace.name}, first {share:.0%}", pods=trace.pods[:cut]),
        replace(trace, name=f"{trace.name}, last {1 - share:.0%}", pods=trace.pods[cut:]),
    )
    for part in parts:
        if not any(pod.gpus for pod in part.pods):
            raise ValueError(f"{part.name}: no pod requests a GPU, expected at least one")
    return parts
