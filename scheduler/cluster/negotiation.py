"""Which format an ``Accept`` header asks for."""

from functools import lru_cache
from typing import Literal

from scheduler.cluster.errors import not_acceptable

Shape = Literal["plain", "table", "metadata"]

_SHAPES: dict[str, Shape] = {
    "table": "table",
    "partialobjectmetadata": "metadata",
    "partialobjectmetadatalist": "metadata",
}
_JSON_TYPES = frozenset(("application/json", "application/*", "application/yaml", "*/*"))


@lru_cache(maxsize=256)
def negotiate(accept: str) -> Shape:
    """The first form of JSON that a client takes.

    Raises:
        ApiError: 406, it takes no JSON at all.
    """
    if not accept.strip():
        return "plain"
    for clause in accept.split(","):
        media_type, *parameters = [part.strip() for part in clause.split(";")]
        if media_type not in _JSON_TYPES:
            continue
        options = dict(part.split("=", 1) for part in parameters if "=" in part)
        wanted = options.get("as", "").lower()
        if not wanted:
            return "plain"
        if wanted in _SHAPES and options.get("g", "meta.k8s.io") == "meta.k8s.io":
            return _SHAPES[wanted]
    raise not_acceptable()
