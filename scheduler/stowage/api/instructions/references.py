"""References to the objects that instructions are about."""

from __future__ import annotations

import msgspec

#: Kinds of preemptors.
POD = "Pod"
POD_GROUP = "PodGroup"


class PodReference(msgspec.Struct, frozen=True):
    """A reference to a pod; the UID distinguishes pods of the same name."""

    namespace: str
    name: str
    uid: str

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"


class PodGroupReference(msgspec.Struct, frozen=True):
    """A reference to a pod group of ``scheduling.k8s.io``."""

    namespace: str
    name: str
    uid: str

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"


class ClaimReference(msgspec.Struct, frozen=True):
    """A reference to a resource claim in the version on which the decision is based."""

    namespace: str
    name: str
    uid: str
    resource_version: str

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"
