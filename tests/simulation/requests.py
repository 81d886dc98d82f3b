"""The API server's answers to requests for a single object."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from stowage.api.reflected_kinds import POD_GROUP_SOURCES, REFLECTED_KINDS
from tests.simulation.device_requests import answer_device_claim, create_device_claim
from tests.simulation.gang_requests import answer_group_request
from tests.simulation.server import (
    CLAIMS,
    CONFIG_MAPS,
    LEASES,
    NOT_FOUND,
    PODS,
    VOLUMES,
    Answer,
    Json,
    Key,
    ModelServer,
    refusal,
)

LIST_PATHS = frozenset(
    [*(kind.path for kind in (*REFLECTED_KINDS, *POD_GROUP_SOURCES)), PODS, CONFIG_MAPS]
)

_POD = re.compile(r"/api/v1/namespaces/([^/]+)/pods/([^/]+)(/binding|/status)?$")
_LEASE = re.compile(r"/apis/coordination.k8s.io/v1/namespaces/[^/]+/leases(?:/([^/]+))?$")
_EVENT = re.compile(r"/apis/events.k8s.io/v1/namespaces/[^/]+/events")
_CLAIM = re.compile(r"/api/v1/namespaces/([^/]+)/persistentvolumeclaims/([^/]+)$")
_VOLUME = re.compile(r"/api/v1/persistentvolumes/([^/]+)$")
_DEVICE_CLAIM = re.compile(
    r"/apis/resource.k8s.io/v1/namespaces/([^/]+)/resourceclaims(?:/([^/]+)(/status)?)?$"
)
_PRECONDITION = refusal(409, "Conflict", "Precondition failed: UID in precondition")


def answer_request(
    server: ModelServer, process: str, method: str, path: str, body: bytes | None
) -> Answer:
    """Apply a request of a process and answer it.

    Raises:
        NotImplementedError: The model has no such resource.
    """
    sent: Json = msgspec.json.decode(body) if body else {}
    if (found := _POD.match(path)) is not None:
        namespace, name, subresource = found.groups()
        if subresource == "/binding":
            uid = sent["metadata"].get("uid", "")
            return server.bind(process, (namespace, name), sent["target"]["name"], uid)
        return _answer_pod(server, method, (namespace, name), sent)
    if (found := _LEASE.match(path)) is not None:
        return _answer_lease(server, method, found[1] or sent["metadata"]["name"], sent)
    if (found := _CLAIM.match(path)) is not None:
        return _answer_storage(server, method, CLAIMS, (found[1], found[2]), sent)
    if (found := _VOLUME.match(path)) is not None:
        return _answer_storage(server, method, VOLUMES, ("", found[1]), sent)
    if (found := _DEVICE_CLAIM.match(path)) is not None:
        namespace, name, subresource = found.groups()
        if method == "POST":
            return create_device_claim(server, namespace, sent)
        return answer_device_claim(server, method, (namespace, name), subresource or "", sent)
    if _EVENT.match(path):
        return _answer_event(server, process, method, sent)
    if (answer := answer_group_request(server, path, sent)) is not None:
        return answer
    raise NotImplementedError(f"{method} {path}")


def _answer_pod(server: ModelServer, method: str, key: Key, sent: Json) -> Answer:
    pod = server.collection(PODS).get(key)
    if pod is None:
        return NOT_FOUND
    if method == "GET":
        return Answer(200, pod)
    wanted = sent.get("preconditions") if method == "DELETE" else sent.get("metadata")
    if (wanted or {}).get("uid", pod["metadata"]["uid"]) != pod["metadata"]["uid"]:
        return _PRECONDITION
    if method == "DELETE":
        server.evicted.append(pod)
        return Answer(200, server.terminate(key) or pod)
    status: Json = {name: value or "" for name, value in sent["status"].items()}
    if "conditions" in status:
        # A strategic merge patch merges conditions by type.
        old = {each["type"]: each for each in pod["status"].get("conditions", ())}
        merged = {**old, **{each["type"]: each for each in status["conditions"]}}
        status["conditions"] = list(merged.values())
    if all(pod["status"].get(name) == value for name, value in status.items()):
        return Answer(200, pod)
    return Answer(200, server.update(PODS, key, status=status) or {})


def _answer_event(server: ModelServer, process: str, method: str, sent: Json) -> Answer:
    """Count the Event without storing it."""
    if method == "POST":
        name = sent["metadata"]["name"]
        if name in server.event_names:
            return refusal(409, "AlreadyExists")
        server.event_names.add(name)
        server.events[process, sent["regarding"]["uid"], sent["reason"]] += 1
    return Answer(201, sent)


def _answer_lease(server: ModelServer, method: str, name: str, sent: Json) -> Answer:
    key = ("kube-system", name)
    lease = server.collection(LEASES).get(key)
    if method == "POST":
        if lease is not None:
            return refusal(409, "AlreadyExists")
        return Answer(201, server.create(LEASES, sent))
    if lease is None:
        return NOT_FOUND
    if method == "GET":
        return Answer(200, lease)
    if sent["metadata"].get("resourceVersion") != lease["metadata"]["resourceVersion"]:
        return refusal(409, "Conflict")
    return Answer(200, server.update(LEASES, key, spec=sent["spec"]) or {})


def _answer_storage(server: ModelServer, method: str, path: str, key: Key, sent: Json) -> Answer:
    """Patch a claim or a volume, if the resource version matches."""
    found = server.collection(path).get(key)
    if found is None:
        return NOT_FOUND
    if method == "GET":
        return Answer(200, found)
    metadata: dict[str, Any] = sent["metadata"]
    known: dict[str, Any] = found["metadata"]
    if any(metadata[name] != known[name] for name in ("uid", "resourceVersion")):
        return refusal(409, "Conflict", "the object has been modified")
    old = found["metadata"].get("annotations", {})
    annotations = {**old, **metadata.get("annotations", {})}
    parts = {"metadata": {"annotations": annotations}, "spec": sent.get("spec", {})}
    return Answer(200, server.update(path, key, **parts) or {})
