"""Namespaces."""

from stowage.api.objects.meta import ApiStruct, ObjectMeta


class Namespace(ApiStruct, frozen=True):
    """A namespace; scheduling reads its labels."""

    metadata: ObjectMeta = ObjectMeta()
