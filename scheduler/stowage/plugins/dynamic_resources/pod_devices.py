"""What the plugin knows of a pod in one cycle."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from stowage.api.objects.device import ResourceClaim, ResourceClaimSpec
from stowage.api.objects.pod import ContainerExtendedResourceRequest
from stowage.framework.verdict import BoolArray
from stowage.plugins.dynamic_resources.answers import Answers
from stowage.plugins.dynamic_resources.extended import ExtendedRequests
from stowage.plugins.dynamic_resources.templates import Template
from stowage.state.devices.devices import ClaimAllocation


class Variant(msgspec.Struct, frozen=True, eq=False):
    """What is to be allocated on nodes that provide the same extended resources themselves.

    Attributes:
        nodes: ``bool[rows]``: the nodes; None for all.
        template: The claims to allocate, that for extended resources last.
        extended: The requests for extended resources; None if nothing is to be allocated for them.
        answers: On which of the nodes the claims can be allocated; None if there is no claim.
    """

    nodes: BoolArray | None
    template: Template
    extended: ExtendedRequests | None
    answers: Answers | None


class PodDevices(msgspec.Struct, eq=False):
    """The claims of a pod in this cycle.

    Attributes:
        claims: The claims that ``spec.resourceClaims`` names.
        stale: The claim for extended resources that an earlier attempt left behind.
        extended: The extended resources that the pod requests, if a class serves one of them.
        shared: The devices that companions in the pod group have reserved for claims of this pod.
        variants: What is to be allocated where; None before Filter.
        unavailable: Claim -> ``bool[rows]``: where an allocated claim cannot be used.
        reserved: The allocations of Reserve.
        mappings: The requests by which containers get extended resources.
        extended_spec: The spec of the claim for extended resources.
        is_written: Whether PreBind has written the claims.
        special: The claim for extended resources that PreBind has created.
        waits_since: When an Event said that the pod waits for its devices, by the timer; None
            before, and after the wait has ended.
        has_announced_wait: Whether an Event says that the pod waits for its devices.
    """

    claims: Sequence[ResourceClaim] = ()
    stale: ResourceClaim | None = None
    extended: tuple[str, ...] = ()
    shared: tuple[ClaimAllocation, ...] = ()
    variants: Sequence[Variant] | None = None
    unavailable: dict[str, BoolArray] = msgspec.field(default_factory=dict)
    reserved: tuple[ClaimAllocation, ...] = ()
    mappings: tuple[ContainerExtendedResourceRequest, ...] | None = None
    extended_spec: ResourceClaimSpec | None = None
    is_written: bool = False
    special: ResourceClaim | None = None
    waits_since: float | None = None
    has_announced_wait: bool = False

    @property
    def unallocated(self) -> list[ResourceClaim]:
        """The claims of the pod that have no allocation."""
        return [each for each in self.claims if each.status.allocation is None]
