"""Namespaces."""

from stowage.api.objects.meta import ApiStruct, ObjectMeta


class Namespace(ApiStruct, frozen=True):
    """A namespace; only its labels matter to scheduling."""

    metadata: ObjectMeta = ObjectMeta()
