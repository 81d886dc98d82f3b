"""Resources that plugins name themselves, and their objects as plain dicts."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import msgspec

from stowage.api.objects.meta import ObjectMeta

_NOTATION = re.compile(
    r"(?P<plural>[a-z]([-a-z0-9]*[a-z0-9])?)\.(?P<version>v[0-9]+((alpha|beta)[0-9]+)?)"
    r"\.(?P<group>([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?)"
)


class CustomResource(NamedTuple):
    """A resource by the parts of its notation, ``<plural>.<version>.<group>``."""

    plural: str
    version: str
    group: str

    @property
    def path(self) -> str:
        """Path of the list of all namespaces."""
        prefix = f"/apis/{self.group}" if self.group else "/api"
        return f"{prefix}/{self.version}/{self.plural}"


def parse_custom_resource(text: str) -> CustomResource:
    """Read kube-scheduler's notation of a resource.

    Raises:
        ValueError: The text is not in that notation.

    Examples:
        >>> parse_custom_resource("foos.v1.example.com").path
        '/apis/example.com/v1/foos'
        >>> parse_custom_resource("configmaps.v1.").path
        '/api/v1/configmaps'
    """
    match = _NOTATION.fullmatch(text)
    if match is None:
        expected = "a member of EventResource or <plural>.<version>.<group>"
        raise ValueError(f"resource {text!r}, expected {expected}, e.g. foos.v1.example.com")
    return CustomResource(match["plural"], match["version"], match["group"])


class CustomObject:
    """An object of a resource whose fields the scheduler does not know.

    Attributes:
        metadata: The part that every object has.
        content: The whole object, as JSON decodes to.
    """

    __slots__ = ("content", "metadata")

    def __init__(self, content: dict[str, Any]) -> None:
        self.metadata = msgspec.convert(content.get("metadata", {}), ObjectMeta)
        self.content = content
