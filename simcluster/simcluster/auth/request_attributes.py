"""The verb and resource of a request, as authorizers see it.

Follows apiserver's ``RequestInfoFactory``.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from simcluster.apiserver.list_options import parse_list_options
from simcluster.apiserver.paths import without_watch_prefix
from simcluster.kinds.resources import NAMESPACES

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_NAMED_BY_SELECTOR = re.compile(r"(?:^|,)metadata\.name==?([^,]+)(?:,|$)")


class Attributes(NamedTuple):
    """A request as an authorizer sees it.

    ``namespace`` is empty for all namespaces and for cluster-scoped kinds, ``name`` for requests on
    a collection. A request on no resource, such as ``/version``, has only a verb and a path.
    """

    verb: str
    path: str
    is_resource_request: bool = False
    group: str = ""
    namespace: str = ""
    resource: str = ""
    subresource: str = ""
    name: str = ""


def attributes_of(method: str, path: str, query: Mapping[str, str]) -> Attributes:
    """The attributes of a request.

    Raises:
        ApiError: 400, the query of a list or watch is malformed.
    """
    shown, watches = without_watch_prefix(path)
    parts = shown.strip("/").split("/")
    group = ""
    if parts[0] == "api" and len(parts) > 2:
        rest = parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, rest = parts[1], parts[3:]
    else:
        return Attributes(method.lower(), path)
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        if len(rest) > 2 and rest[2] not in NAMESPACES.subresources:
            rest = rest[2:]
    resource, name, subresource, *_ = [*rest, "", ""]
    verb = "watch" if watches else _VERBS.get(method, "get")
    if not name and verb in {"get", "delete"}:
        verb, name = _collection_verb(verb, query)
    return Attributes(verb, path, True, group, namespace, resource, subresource, name)


def _collection_verb(verb: str, query: Mapping[str, str]) -> tuple[str, str]:
    """The verb of a request on a collection, and the name in its field selector.

    With this name a rule with ``resourceNames`` can allow a list or a watch.
    """
    found = _NAMED_BY_SELECTOR.search(query.get("fieldSelector", ""))
    name = found.group(1) if found else ""
    if verb == "delete":
        return "deletecollection", name
    return "watch" if parse_list_options(query).watch else "list", name
