"""Services and controllers for default topology spreading."""

import msgspec

from stowage.api.objects.meta import ApiStruct, LabelSelector, ObjectMeta


class SelectingSpec(ApiStruct, frozen=True):
    """A spec that selects pods by equality of labels."""

    selector: dict[str, str] = msgspec.field(default_factory=dict)


class LabelSelectingSpec(ApiStruct, frozen=True):
    """A spec that selects pods by a label selector."""

    selector: LabelSelector | None = None


class Service(ApiStruct, frozen=True):
    """A service."""

    metadata: ObjectMeta = ObjectMeta()
    spec: SelectingSpec = SelectingSpec()


class ReplicationController(ApiStruct, frozen=True):
    """A replication controller."""

    metadata: ObjectMeta = ObjectMeta()
    spec: SelectingSpec = SelectingSpec()


class ReplicaSet(ApiStruct, frozen=True):
    """A replica set."""

    metadata: ObjectMeta = ObjectMeta()
    spec: LabelSelectingSpec = LabelSelectingSpec()


class StatefulSet(ApiStruct, frozen=True):
    """A stateful set."""

    metadata: ObjectMeta = ObjectMeta()
    spec: LabelSelectingSpec = LabelSelectingSpec()
