"""What is wrong with an object, said so that its author can put it right."""

QUANTITY_EXPECTATION = "a Kubernetes quantity such as 500m or 1Gi"


class QuantityError(ValueError):
    """A text that is not a Kubernetes quantity."""

    def __init__(self, text: object) -> None:
        super().__init__(f'"{text}" is not a quantity (expected {QUANTITY_EXPECTATION})')
        self.text = text


class SelectorError(ValueError):
    """A selector with an operator, key or values that Kubernetes does not allow."""


class InvalidObject(ValueError):  # noqa: N818 - it names the finding, as ObjectInvalid events do
    """An object of the API that cannot be used as it is.

    Attributes:
        kind: ``Pod``, ``Node``, ...
        name: ``namespace/name`` of the object, or just its name; empty where it has none.
        field: Path within the object, e.g. ``spec.containers[0].resources.requests[cpu]``.
        value: What is there, as text.
        expectation: What should be there.
        uid: Of the object, where known.
    """

    def __init__(
        self, kind: str, name: str, field: str, value: str, expectation: str, uid: str = ""
    ) -> None:
        super().__init__(kind, name, field, value, expectation, uid)
        self.kind = kind
        self.name = name
        self.field = field
        self.value = value
        self.expectation = expectation
        self.uid = uid

    @property
    def namespace(self) -> str:
        """The namespace in `name`, empty for an object without one."""
        return self.name.rpartition("/")[0]

    @property
    def object_name(self) -> str:
        """`name` without its namespace."""
        return self.name.rpartition("/")[2]

    def __str__(self) -> str:
        return (
            f"{self.kind} {self.name or '<unknown>'}: {self.field}: "
            f'"{self.value}" is not valid (expected {self.expectation})'
        )
