"""The events of pod groups; `stowage.api.events` has all events."""

from __future__ import annotations

import msgspec

from stowage.api.objects.pod_groups import CORE_GROUPS, PodGroup


class PodGroupSeen(msgspec.Struct, frozen=True, tag=True):
    """A pod group was added or updated.

    Attributes:
        group: The group.
        source: The API group that it comes from; see `stowage.api.objects.pod_groups`.
        permit_timeout_s: How long a member waits for its companions after it was reserved; None
            for kube-scheduler's five minutes.
    """

    group: PodGroup
    source: str = CORE_GROUPS
    permit_timeout_s: int | None = None


class PodGroupsServed(msgspec.Struct, frozen=True, tag=True):
    """Whether the API server serves the kind of a source, as discovery says.

    Attributes:
        source: The API group.
        is_served: While this is False, pods that name a group of the source are ordinary pods. A
            source counts as served until the first event.
    """

    source: str
    is_served: bool


class PodGroupGone(msgspec.Struct, frozen=True, tag=True):
    """A pod group was deleted; one of the same name from another source stays."""

    namespace: str
    name: str
    source: str = CORE_GROUPS
