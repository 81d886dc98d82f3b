"""Errors about objects; they name object, field, value and expectation."""

from itertools import islice

QUANTITY_EXPECTATION = "a Kubernetes quantity such as 500m or 1Gi"
MAX_SHOWN = 200
"""Longest text shown of a value, which may be a megabyte long where a number is expected."""


def shown(value: object) -> str:
    """A value as text, shortened for logs and Events."""
    # A large container is not converted to text only to be cut.
    text = str(value) if isinstance(value, str | int | float | bool) else _shape(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}... ({len(text)} characters)"


def _shape(value: object) -> str:
    if isinstance(value, dict | list | tuple) and _size(value) > MAX_SHOWN:
        return f"{type(value).__name__} of {len(value)}"
    return str(value)


def _size(value: object) -> int:
    """The approximate length of a value as text; stops counting at the limit."""
    total, left = 0, [value]
    while left and total <= MAX_SHOWN:
        each = left.pop()
        total += len(each) + 2 if isinstance(each, str) else 2
        if isinstance(each, dict):
            left += [*islice(each.keys(), MAX_SHOWN), *islice(each.values(), MAX_SHOWN)]
        elif isinstance(each, list | tuple):
            left += islice(each, MAX_SHOWN)
    return total


class QuantityError(ValueError):
    """A text that is not a Kubernetes quantity."""

    def __init__(self, text: object) -> None:
        super().__init__(f'"{shown(text)}" is not a quantity (expected {QUANTITY_EXPECTATION})')
        self.text = text


class SelectorError(ValueError):
    """A selector with an invalid operator, key or value."""


class InvalidObject(ValueError):  # noqa: N818 - it names the finding, as ObjectInvalid events do
    """An API object that cannot be used.

    Attributes:
        kind: ``Pod``, ``Node``, ...
        name: ``namespace/name`` of the object, or just its name; empty where it has none.
        field: Path within the object, e.g. ``spec.containers[0].resources.requests[cpu]``.
        value: The value of the field, as text.
        expectation: What the field should be.
        uid: The UID of the object, if known.
    """

    def __init__(
        self, kind: str, name: str, field: str, value: str, expectation: str, uid: str = ""
    ) -> None:
        name, field, value = shown(name), shown(field), shown(value)
        super().__init__(kind, name, field, value, expectation, uid)
        self.kind = kind
        self.name = name
        self.field = field
        self.value = value
        self.expectation = expectation
        self.uid = uid

    def __str__(self) -> str:
        return (
            f"{self.kind} {self.name or '<unknown>'}: {self.field}: "
            f'"{self.value}" is not valid (expected {self.expectation})'
        )


def require_identity(kind: str, namespaced_name: str, name: str, uid: str) -> None:
    """Check that an object has a name and a UID.

    Raises:
        InvalidObject: One is missing; the API server sends no such object.
    """
    for field, value in (("metadata.name", name), ("metadata.uid", uid)):
        if not value:
            raise InvalidObject(kind, namespaced_name, field, value, "one that is not empty", uid)
