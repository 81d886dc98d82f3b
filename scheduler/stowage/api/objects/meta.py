"""Metadata of API objects, and structs that several kinds share."""

from typing import Annotated

import msgspec

Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""An integer of the API; JSON may hold larger ones, arrays cannot."""
Quantities = dict[str, str | Int64 | float]
"""Resource name -> quantity as sent; `stowage.api.values.quantity` parses quantities."""


class ApiStruct(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """Base of all API structs: frozen, camelCase on the wire, absent fields take their default.

    Instances are trees that nothing can tie into a cycle, so the garbage collector need not
    track them; unknown fields are skipped when decoding, defaults are left out when encoding.
    """


class OwnerReference(ApiStruct, frozen=True):
    """metav1.OwnerReference."""

    kind: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    controller: bool = False


class ObjectMeta(ApiStruct, frozen=True):
    """metav1.ObjectMeta; timestamps are RFC 3339 strings."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: Int64 = 0
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()

    @property
    def namespaced_name(self) -> str:
        """``namespace/name``, or just the name of an object without a namespace."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class LabelSelectorRequirement(ApiStruct, frozen=True):
    """One expression of a label selector; operators In, NotIn, Exists, DoesNotExist."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class LabelSelector(ApiStruct, frozen=True):
    """metav1.LabelSelector as sent; `stowage.api.values.selectors` compiles it."""

    match_labels: dict[str, str] = msgspec.field(default_factory=dict)
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


class ObjectReference(ApiStruct, frozen=True):
    """A reference to another object, such as ``PersistentVolume.spec.claimRef``."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    resource_version: str = ""


class Condition(ApiStruct, frozen=True):
    """One condition of a status."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: Int64 = 0


class ListMeta(ApiStruct, frozen=True):
    """metav1.ListMeta; ``continue_`` is the wire's ``continue``."""

    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


def controller_of(metadata: ObjectMeta) -> OwnerReference | None:
    """The owner marked as the managing controller (upstream ``metav1.GetControllerOf``)."""
    for owner in metadata.owner_references:
        if owner.controller:
            return owner
    return None
