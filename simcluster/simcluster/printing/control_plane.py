"""The columns of kinds that configure an API server."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from simcluster.printing.cells import (
    NONE,
    UNKNOWN,
    UNSET,
    Cell,
    Column,
    age_column,
    at,
    column,
    human_duration,
    name_column,
)

Json = dict[str, Any]


def _number_of(*path: str) -> Callable[[Json], Cell]:
    found = at(*path, default=None)

    def cell(obj: Json) -> Cell:
        listed: Any = found(obj)
        return len(listed or ())

    return cell


def _webhooks() -> Sequence[Column]:
    return (name_column(), column("Webhooks", _number_of("webhooks"), "integer"), age_column())


def _param_kind(policy: Json) -> Cell:
    found = policy["spec"].get("paramKind")
    return f"{found.get('apiVersion')}/{found.get('kind')}" if found else UNSET


def _param_ref(binding: Json) -> Cell:
    found = binding["spec"].get("paramRef")
    if not found:
        return UNSET
    namespace, name = found.get("namespace"), found.get("name") or "*"
    return f"{namespace}/{name}" if namespace else name


_BINDING = (
    name_column(),
    column("PolicyName", at("spec", "policyName")),
    column("ParamRef", _param_ref),
    age_column(),
)


def _service(api_service: Json) -> Cell:
    found = api_service["spec"].get("service")
    return f"{found.get('namespace')}/{found.get('name')}" if found else "Local"


def _available(api_service: Json) -> Cell:
    conditions = (api_service.get("status") or {}).get("conditions") or ()
    available = next((each for each in conditions if each["type"] == "Available"), None)
    if available is None:
        return "Unknown"
    if available["status"] == "True":
        return "True"
    return f"{available['status']} ({available.get('reason', '')})"


def _request_state(request: Json) -> Cell:
    status = request.get("status") or {}
    conditions = {each["type"] for each in status.get("conditions") or ()}
    words = [word for word in ("Denied", "Approved") if word in conditions][:1] or ["Pending"]
    if "Failed" in conditions:
        words.append("Failed")
    if status.get("certificate"):
        words.append("Issued")
    return ",".join(words)


def _duration(request: Json) -> Cell:
    seconds = request["spec"].get("expirationSeconds")
    return NONE if seconds is None else human_duration(seconds)


def _parent(address: Json) -> Cell:
    found = address["spec"].get("parentRef")
    if not found:
        return UNKNOWN
    kind = ".".join(filter(None, (found.get("resource"), found.get("group"))))
    return "/".join(filter(None, (kind, found.get("namespace"), found.get("name"))))


def _missing_level(schema: Json) -> Cell:
    conditions = (schema.get("status") or {}).get("conditions") or ()
    return next((each["status"] for each in conditions if each["type"] == "Dangling"), "?")


def _limited(*path: str) -> Callable[[Json], Cell]:
    return at("spec", "limited", *path, default=NONE)


CONTROL_PLANE_COLUMNS: Mapping[str, Sequence[Column]] = {
    "apiservices.apiregistration.k8s.io": (
        name_column(),
        column("Service", _service),
        column("Available", _available),
        age_column(),
    ),
    "certificatesigningrequests.certificates.k8s.io": (
        name_column(),
        age_column(),
        column("SignerName", at("spec", "signerName")),
        column("Requestor", at("spec", "username")),
        column("RequestedDuration", _duration),
        column("Condition", _request_state),
    ),
    "ipaddresses.networking.k8s.io": (name_column(), column("ParentRef", _parent)),
    "servicecidrs.networking.k8s.io": (
        name_column(),
        column("CIDRs", lambda obj: ",".join(obj["spec"].get("cidrs") or ())),
        age_column(),
    ),
    "flowschemas.flowcontrol.apiserver.k8s.io": (
        name_column(),
        column("PriorityLevel", at("spec", "priorityLevelConfiguration", "name")),
        column("MatchingPrecedence", at("spec", "matchingPrecedence", default=0)),
        column("DistinguisherMethod", at("spec", "distinguisherMethod", "type", default=NONE)),
        age_column(),
        column("MissingPL", _missing_level),
    ),
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": (
        name_column(),
        column("Type", at("spec", "type")),
        column("NominalConcurrencyShares", _limited("nominalConcurrencyShares")),
        column("Queues", _limited("limitResponse", "queuing", "queues")),
        column("HandSize", _limited("limitResponse", "queuing", "handSize")),
        column("QueueLengthLimit", _limited("limitResponse", "queuing", "queueLengthLimit")),
        age_column(),
    ),
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": _webhooks(),
    "validatingwebhookconfigurations.admissionregistration.k8s.io": _webhooks(),
    "mutatingadmissionpolicies.admissionregistration.k8s.io": (
        name_column(),
        column("Mutations", _number_of("spec", "mutations"), "integer"),
        column("ParamKind", _param_kind),
        age_column(),
    ),
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io": _BINDING,
    "validatingadmissionpolicies.admissionregistration.k8s.io": (
        name_column(),
        column("Validations", _number_of("spec", "validations"), "integer"),
        column("ParamKind", _param_kind),
        age_column(),
    ),
    "validatingadmissionpolicybindings.admissionregistration.k8s.io": _BINDING,
}
