"""Admission of device claims: who may ask for admin access, and who may write which status."""

from collections.abc import Callable, Sequence

from simcluster.apiserver import errors
from simcluster.kinds.defaults.devices import CLAIM_STATUS
from simcluster.kinds.defaults.filling import defaulting
from simcluster.kinds.resources import (
    NAMESPACES,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    Resource,
)
from simcluster.store.store import Store
from simcluster.values import Json

ADMIN_LABEL = "resource.kubernetes.io/admin-access"
_NOT_ADMIN = (
    f"admin access to devices requires the `{ADMIN_LABEL}: true` label on the containing namespace"
)
_BINDING_FIELDS = ("allocation", "reservedFor")

Authorize = Callable[[str, str, str], str]
"""Takes the verb, a synthetic subresource and a name; returns the refusal, empty if allowed."""
_fill_status = defaulting(CLAIM_STATUS)


def _is_admin_namespace(store: Store, namespace: str) -> bool:
    found = store.get(NAMESPACES.stored_in, "", namespace)
    return found is not None and found.labels.get(ADMIN_LABEL) == "true"


def _check_admin(store: Store, resource: Resource, obj: Json, spec: Json) -> None:
    metadata = obj["metadata"]
    if _is_admin_namespace(store, metadata["namespace"]):
        return
    for position, request in enumerate(spec["devices"].get("requests") or ()):
        if (request.get("exactly") or {}).get("adminAccess"):
            path = f"spec.devices.requests[{position}].adminAccess"
            error = errors.forbidden_field(path, _NOT_ADMIN)
            raise errors.invalid_object(resource, metadata.get("name", ""), [error])


def admit_device_claim(store: Store, claim: Json) -> None:
    """Take claims with admin access in namespaces with the label for it only.

    Raises:
        ApiError: 422.
    """
    _check_admin(store, RESOURCE_CLAIMS, claim, claim["spec"])


def admit_device_claim_template(store: Store, template: Json) -> None:
    """Take templates of claims with admin access in namespaces with the label for it only.

    Raises:
        ApiError: 422.
    """
    _check_admin(store, RESOURCE_CLAIM_TEMPLATES, template, template["spec"]["spec"])


def keep_claim_status(new: Json, old: Json) -> None:
    """Set the defaults of a status, and drop the status of devices that lost their allocation."""
    status = new.setdefault("status", {})
    _fill_status(status)
    lost = _devices_of(old.get("status") or {}) - _devices_of(status)
    if "devices" not in status:
        return
    kept = [device for device in status["devices"] if _device_of(device) not in lost]
    status["devices"] = kept
    if not kept:
        del status["devices"]


def _device_of(entry: Json) -> tuple[str, ...]:
    return tuple(entry.get(field) or "" for field in ("driver", "pool", "device"))


def _results(status: Json) -> Sequence[Json]:
    return ((status.get("allocation") or {}).get("devices") or {}).get("results") or ()


def _devices_of(status: Json) -> set[tuple[str, ...]]:
    return {_device_of(result) for result in _results(status)}


def claim_status_errors(
    store: Store, new: Json, old: Json, verb: str, authorize: Authorize
) -> list[errors.FieldError]:
    """Errors of a change to a claim's status that depend on the namespace and on the user.

    ``DRAResourceClaimGranularStatusAuthorization`` asks for permissions besides the one for the
    status: ``resourceclaims/binding`` to change allocation or reservations, and
    ``resourceclaims/driver`` with a driver's name to change the status of its devices.
    """
    status, before = new["status"], old.get("status") or {}
    found = _admin_errors(store, new, before)
    is_bound_anew = any(status.get(field) != before.get(field) for field in _BINDING_FIELDS)
    if is_bound_anew and (why := authorize(verb, "binding", "")):
        detail = (
            "changing status.allocation or status.reservedFor requires "
            f'resource="resourceclaims/binding", verb="{verb}" permission: {why}'
        )
        found.append(errors.forbidden_field("status", detail))
    driver_verb = f"arbitrary-node:{verb}"
    for driver in sorted(_changed_drivers(status, before)):
        if why := authorize(driver_verb, "driver", driver):
            detail = (
                'changing status.devices requires resource="resourceclaims/driver", '
                f'verb="[{driver_verb}]" permission: {why}'
            )
            found.append(errors.forbidden_field("status.devices", detail))
    return found


def _admin_errors(store: Store, new: Json, before: Json) -> list[errors.FieldError]:
    if any(result.get("adminAccess") for result in _results(before)):
        return []
    for position, result in enumerate(_results(new["status"])):
        if result.get("adminAccess"):
            if _is_admin_namespace(store, new["metadata"]["namespace"]):
                return []
            path = f"status.allocation.devices.results[{position}].adminAccess"
            return [errors.forbidden_field(path, _NOT_ADMIN)]
    return []


def _changed_drivers(status: Json, before: Json) -> set[str]:
    """Drivers of the devices whose status was added, removed or changed while allocated."""
    now, then = (list(state.get("devices") or ()) for state in (status, before))
    allocated = _devices_of(status)
    changed = [entry for entry in now if entry not in then]
    changed += [old for old in then if old not in now and _device_of(old) in allocated]
    return {entry["driver"] for entry in changed}
