"""The API server's answers to requests about pod groups: discovery and statuses."""

from __future__ import annotations

import re

from tests.simulation.server import (
    GROUPS,
    LABEL_GROUPS,
    NOT_FOUND,
    Answer,
    Json,
    ModelServer,
    refusal,
)

_VERSIONS = {path.rpartition("/")[0]: path for path in (GROUPS, LABEL_GROUPS)}
_STATUS = re.compile(
    r"/apis/scheduling.k8s.io/v1alpha2/namespaces/([^/]+)/podgroups/([^/]+)/status$"
)


def answer_group_request(server: ModelServer, path: str, sent: Json) -> Answer | None:
    """Answer discovery, or patch the status of a group; None for other paths."""
    if path in _VERSIONS:
        if _VERSIONS[path] not in server.served_groups:
            return NOT_FOUND
        return Answer(200, {"kind": "APIResourceList", "resources": [{"name": "podgroups"}]})
    found = _STATUS.match(path)
    return None if found is None else _patch(server, (found[1], found[2]), sent)


def _patch(server: ModelServer, key: tuple[str, str], sent: Json) -> Answer:
    group = server.collection(GROUPS).get(key)
    if group is None:
        return NOT_FOUND
    if sent["metadata"]["uid"] != group["metadata"]["uid"]:
        return refusal(409, "Conflict", "Precondition failed: UID in precondition")
    old = {each["type"]: each for each in group["status"].get("conditions", ())}
    merged = {**old, **{each["type"]: each for each in sent["status"]["conditions"]}}
    status = {"conditions": list(merged.values())}
    return Answer(200, server.update(GROUPS, key, status=status) or {})
