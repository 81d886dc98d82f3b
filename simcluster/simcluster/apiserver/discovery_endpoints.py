"""Answers requests for discovery, OpenAPI, the version and the list of paths."""

import hashlib
from collections.abc import Callable
from typing import Any

import msgspec

from simcluster.apiserver import errors
from simcluster.apiserver.discovery import (
    AGGREGATED,
    VERSION,
    aggregated,
    api_group,
    api_group_list,
    api_resource_list,
    api_versions,
)
from simcluster.apiserver.messages import Answer, ApiRequest
from simcluster.apiserver.negotiation import JSON_TYPE, clauses, negotiate
from simcluster.apiserver.paths import Target, parse_path
from simcluster.kinds.catalog import Catalog
from simcluster.openapi import documents as openapi
from simcluster.store.store import encode

Json = dict[str, Any]

TEXT_TYPE = "text/plain; charset=utf-8"
_METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"
_PROTOBUF_V2 = "application/com.github.proto-openapi.spec.v2"
_PROTOBUF_V3 = "application/com.github.proto-openapi.spec.v3"
_EMPTY_V2 = b"\x0a\x032.0\x12\x12\x0a\x0aKubernetes\x12\x04v1.x"
"""The OpenAPI v2 document in protobuf, without kinds. kubectl falls back to it for kinds that the
v3 document does not have, and then leaves validation to the server."""
_AGGREGATED_OPTIONS = {"g": "apidiscovery.k8s.io", "v": "v2", "as": "APIGroupDiscoveryList"}
_YEAR_S = 31_536_000
_VARY = {"Vary": "Accept"}
_PATHS = ("/healthz", "/livez", "/metrics", "/openapi/v2", "/openapi/v3", "/readyz", "/version")


PAGE_NOT_FOUND = Answer(404, b"404 page not found\n", content_type=TEXT_TYPE)


class DiscoveryEndpoints:
    """Serves documents that describe a catalog; each is made once for each state of the catalog.

    Args:
        catalog: the served resources.
        address: returns ``host:port`` of the server.
        metrics: returns the body of ``/metrics``.
    """

    def __init__(
        self,
        catalog: Catalog,
        address: Callable[[], str],
        metrics: Callable[[], bytes],
    ) -> None:
        self._metrics = metrics
        self._catalog = catalog
        self._address = address
        self._made: dict[str, bytes] = {}
        self._made_for = -1

    def answer(self, request: ApiRequest) -> Answer:
        """The document at a path, or the 404 that fits it.

        Raises:
            ApiError: 404 below a group that is served; 405; 406.
        """
        if request.path == "/metrics":
            return Answer(200, self._metrics(), content_type=_METRICS_TYPE)
        if "//" in request.path:
            return PAGE_NOT_FOUND
        found = self._find(request)
        if found is None:
            return self._missing(request.path)
        if request.method != "GET":
            raise errors.method_not_allowed()
        return found

    def _find(self, request: ApiRequest) -> Answer | None:
        parts = request.path.strip("/").split("/")
        if parts[0] == "openapi":
            return self._openapi(request, parts)
        if len(parts) == 1 and parts[0] in {"api", "apis"} and _wants_aggregated(request.accept):
            body = self._once(AGGREGATED + parts[0], lambda: self._aggregated(parts[0]))
            return _tagged(
                request, Answer(200, body or b"", headers=_VARY, content_type=AGGREGATED)
            )
        if parts[0] in {"api", "apis"}:
            negotiate(request.accept)
        if parts in ([""], ["version"]):
            text = msgspec.json.encode(self._build(parts))
            return Answer(200, msgspec.json.format(text, indent=2))
        body = self._once(request.path.rstrip("/"), lambda: self._build(parts))
        headers = _VARY if parts[0] in {"api", "apis"} and len(parts) == 1 else {}
        return None if body is None else Answer(200, body, headers=headers)

    def _once(self, key: str, build: Callable[[], Json | None]) -> bytes | None:
        if self._made_for != self._catalog.generation:
            self._made_for = self._catalog.generation
            self._made.clear()
        found = self._made.get(key)
        if found is None:
            document = build()
            if document is None:
                return None
            found = self._made[key] = encode(document)
        return found

    def _aggregated(self, root: str) -> Json:
        return aggregated(self._catalog, core=root == "api")

    def _build(self, parts: list[str]) -> Json | None:
        if parts == [""]:
            return {"paths": self._paths()}
        if parts == ["version"]:
            return VERSION
        if parts == ["api"]:
            return api_versions(self._address())
        if parts == ["apis"]:
            return api_group_list(self._catalog)
        if len(parts) == 2 and parts[0] == "apis":
            return api_group(self._catalog, parts[1])
        group_version = _group_version(parts)
        return api_resource_list(self._catalog, *group_version) if group_version else None

    def _paths(self) -> list[str]:
        paths = {"/api", "/apis", *_PATHS}
        for group, version in self._catalog.group_versions():
            paths |= {f"/apis/{group}", f"/apis/{group}/{version}"} if group else {"/api/v1"}
        return sorted(paths)

    def _openapi(self, request: ApiRequest, parts: list[str]) -> Answer | None:
        if parts[1:] == ["v2"]:
            return self._openapi_v2(request)
        if parts[1:2] != ["v3"]:
            return None
        if _PROTOBUF_V3 in request.accept:
            negotiate(request.accept)
        if len(parts) == 2:
            body = self._once("/openapi/v3", self._openapi_index)
            return _tagged(request, Answer(200, body or b""))
        group_version = _group_version(parts[2:])
        if group_version is None:
            return None
        body = self._once(request.path, lambda: openapi.document(self._catalog, *group_version))
        return None if body is None else _hashed(request, Answer(200, body))

    def _openapi_index(self) -> Json:
        paths = {}
        for group, version in self._catalog.group_versions():
            key = f"apis/{group}/{version}" if group else f"api/{version}"
            url = f"/openapi/v3/{key}"
            digest = openapi.fingerprint(self._catalog, group, version)
            paths[key] = {"serverRelativeURL": f"{url}?hash={digest}"}
        return {"paths": paths}

    def _openapi_v2(self, request: ApiRequest) -> Answer:
        if _PROTOBUF_V2 in request.accept and JSON_TYPE not in request.accept:
            return Answer(200, _EMPTY_V2, content_type=f"{_PROTOBUF_V2}.v1.0+protobuf")
        body = self._once("/openapi/v2", lambda: openapi.swagger(self._catalog))
        return _tagged(request, Answer(200, body or b""))

    def _missing(self, path: str) -> Answer:
        parts = path.strip("/").split("/")
        group = parts[1] if parts[0] == "apis" and len(parts) > 1 else ""
        if parts[0] == "api" or (group and self._catalog.has_own_group(group)):
            raise errors.unknown_path()
        owner = parse_path(path.rstrip("/").rpartition("/")[0], self._catalog)
        if isinstance(owner, Target) and owner.name and not owner.subresource:
            raise errors.not_found(owner.resource, owner.name)
        return PAGE_NOT_FOUND


def _wants_aggregated(accept: str) -> bool:
    """Whether the first form of discovery that a client takes is the aggregated one."""
    for clause in clauses(accept):
        if clause.media_type not in {JSON_TYPE, "*/*", "application/*"}:
            continue
        if "as" not in clause.options:
            return False
        if clause.options == _AGGREGATED_OPTIONS:
            return True
    return False


def _tag(body: bytes) -> str:
    return f'"{hashlib.sha256(body).hexdigest().upper()}"'


def _tagged(request: ApiRequest, document: Answer) -> Answer:
    """The document with an ETag, or 304 if the client has this document."""
    tag = _tag(document.body)
    headers = {**document.headers, "ETag": tag}
    if request.if_none_match == tag:
        return document._replace(status=304, body=b"", headers=headers)
    return document._replace(headers=headers)


def _hashed(request: ApiRequest, document: Answer) -> Answer:
    """The document; one that is addressed by its hash may be cached for ever."""
    if "hash" not in request.query:
        return _tagged(request, document)
    headers = {"Cache-Control": f"public, max-age={_YEAR_S}, immutable"}
    return _tagged(request, document._replace(headers=headers))


def _group_version(parts: list[str]) -> tuple[str, str] | None:
    if len(parts) == 2 and parts[0] == "api":
        return "", parts[1]
    return (parts[1], parts[2]) if len(parts) == 3 and parts[0] == "apis" else None
