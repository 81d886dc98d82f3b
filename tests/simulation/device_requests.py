"""The API server's answers to requests for resource claims."""

from __future__ import annotations

from tests.simulation.device_objects import delete_claim, results_of, store_claim
from tests.simulation.server import (
    DEVICE_CLAIMS,
    NOT_FOUND,
    Answer,
    Json,
    Key,
    ModelServer,
    refusal,
)

_DELETED_ITEMS = "$deleteFromPrimitiveList/finalizers"


def create_device_claim(server: ModelServer, namespace: str, sent: Json) -> Answer:
    """Create a claim with a generated name."""
    name = f"{sent['metadata']['generateName']}{server.revision}"
    metadata = {**sent["metadata"], "namespace": namespace, "name": name}
    return Answer(201, server.create(DEVICE_CLAIMS, {**sent, "metadata": metadata, "status": {}}))


def answer_device_claim(
    server: ModelServer, method: str, key: Key, subresource: str, sent: Json
) -> Answer:
    """Read, patch or delete a claim."""
    claim = server.collection(DEVICE_CLAIMS).get(key)
    if claim is None:
        return NOT_FOUND
    if method == "GET":
        return Answer(200, claim)
    wanted = sent.get("preconditions" if method == "DELETE" else "metadata") or {}
    known = claim["metadata"]
    if any(wanted.get(name, known[name]) != known[name] for name in ("uid", "resourceVersion")):
        return refusal(409, "Conflict", "the object has been modified")
    if method == "DELETE":
        delete_claim(server, key)
        return Answer(200, claim)
    patched = _with_status(claim, sent) if subresource else _with_finalizers(claim, sent)
    why = _problem(claim, patched)
    if why:
        return refusal(422, "Invalid", why)
    return Answer(200, claim if patched == claim else store_claim(server, patched))


def _with_finalizers(claim: Json, sent: Json) -> Json:
    metadata = sent["metadata"]
    removed = metadata.get(_DELETED_ITEMS, ())
    kept = [each for each in claim["metadata"].get("finalizers", ()) if each not in removed]
    added = [each for each in metadata.get("finalizers", ()) if each not in kept]
    return {**claim, "metadata": {**claim["metadata"], "finalizers": [*kept, *added]}}


def _with_status(claim: Json, sent: Json) -> Json:
    """A strategic merge patch: consumers are merged by UID, null removes a field."""
    old, patch = claim["status"], sent["status"]
    status = {name: value for name, value in old.items() if patch.get(name, "") is not None}
    if patch.get("allocation") is not None:
        status["allocation"] = {**old.get("allocation", {}), **patch["allocation"]}
    if patch.get("reservedFor") is not None:
        consumers = {each["uid"]: each for each in old.get("reservedFor", ())}
        for each in patch["reservedFor"]:
            if each.get("$patch") == "delete":
                consumers.pop(each["uid"], None)
            else:
                consumers[each["uid"]] = each
        status["reservedFor"] = list(consumers.values())
    return {**claim, "status": status}


def _problem(before: Json, after: Json) -> str:
    """Why the API server refuses a status; empty if it does not."""
    old, new = before["status"], after["status"]
    if old.get("allocation") and new.get("allocation", old["allocation"]) != old["allocation"]:
        return "status.allocation: field is immutable"
    if new.get("reservedFor") and not results_of(after):
        return "status.reservedFor: may not be specified without an allocation"
    is_new = len(new.get("reservedFor", ())) > len(old.get("reservedFor", ()))
    if is_new and before["metadata"].get("deletionTimestamp"):
        return "status.reservedFor: new reservations are forbidden while the claim is deleted"
    return ""
