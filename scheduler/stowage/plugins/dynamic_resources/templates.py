"""What pods want allocated: pods whose claims have equal specs share a template."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from cachetools import LRUCache

from stowage.api.objects.device import ResourceClaimSpec
from stowage.plugins.dynamic_resources.requests import ClaimRequests, claim_requests
from stowage.state.devices.features import ALL_FEATURES, DeviceFeatures

_MAX_SPECS = 4096
_ENCODER = msgspec.json.Encoder()


class Template(msgspec.Struct, frozen=True, eq=False):
    """The claims to allocate, in order.

    Attributes:
        key: Equal for equal specs.
        claims: What each of them asks for.
    """

    key: tuple[bytes, ...]
    claims: tuple[ClaimRequests, ...]

    @property
    def has_lists(self) -> bool:
        """Whether a request has alternatives, so that nodes are scored."""
        return any(any(claim.has_list) for claim in self.claims)

    @property
    def is_plain(self) -> bool:
        """Whether it asks for numbers of devices, which may have to agree in attributes."""
        return all(
            all(each.match_attribute is not None for each in claim.constraints)
            and not any(claim.problems)
            and not any(claim.has_list)
            and all(request.is_plain for request in claim.all_requests)
            for claim in self.claims
        )


class Templates:
    """Makes templates; equal specs are compiled once.

    Args:
        features: The parts of dynamic resource allocation that are switched on.
    """

    def __init__(self, features: DeviceFeatures = ALL_FEATURES) -> None:
        self._features = features
        self._specs: LRUCache[bytes, ClaimRequests] = LRUCache(_MAX_SPECS)

    def of(self, specs: Sequence[ResourceClaimSpec]) -> Template:
        """The template of claims with these specs."""
        keys = tuple(_ENCODER.encode(spec) for spec in specs)
        claims = (self._compiled(key, spec) for key, spec in zip(keys, specs, strict=True))
        return Template(keys, tuple(claims))

    def _compiled(self, key: bytes, spec: ResourceClaimSpec) -> ClaimRequests:
        known = self._specs.get(key)
        if known is None:
            known = self._specs[key] = claim_requests(spec, self._features)
        return known
