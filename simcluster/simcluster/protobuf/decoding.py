"""Request bodies in Kubernetes' protobuf, as kubectl's own subcommands send them.

``kubectl create namespace``, ``create deployment``, ``drain`` and the like post protobuf whatever
the server prefers; files are sent as JSON. Only the messages and fields those commands fill are
known here. Answers are always JSON, which these commands accept.
"""

import base64
from collections.abc import Iterator, Mapping
from typing import Any

from simcluster.apiserver.errors import bad_request
from simcluster.clock import timestamp
from simcluster.protobuf.messages import MESSAGES
from simcluster.protobuf.pods import POD_MESSAGES

Json = dict[str, Any]
Fields = Mapping[int, tuple[str, str]]

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\0"
_REPEATED = "repeated "
_INLINE = "inline "

_META = ("metadata", "ObjectMeta")
_UNKNOWN: Fields = {
    1: ("typeMeta", "TypeMeta"),
    2: ("raw", "raw"),
    3: ("", "text"),
    4: ("", "text"),
}
_MESSAGES: Mapping[str, Fields] = {
    **MESSAGES,
    **POD_MESSAGES,
    "TypeMeta": {1: ("apiVersion", "text"), 2: ("kind", "text")},
    "ObjectMeta": {
        1: ("name", "text"),
        2: ("generateName", "text"),
        3: ("namespace", "text"),
        4: ("selfLink", "text"),
        5: ("uid", "text"),
        6: ("resourceVersion", "text"),
        7: ("generation", "number"),
        8: ("creationTimestamp", "Time"),
        9: ("deletionTimestamp", "Time"),
        10: ("deletionGracePeriodSeconds", "number"),
        11: ("labels", "map"),
        12: ("annotations", "map"),
        13: ("ownerReferences", "repeated OwnerReference"),
        14: ("finalizers", "repeated text"),
        17: ("", "ignored"),
    },
    "LabelSelector": {1: ("matchLabels", "map"), 2: ("matchExpressions", "repeated Expression")},
    "Expression": {1: ("key", "text"), 2: ("operator", "text"), 3: ("values", "repeated text")},
    "Namespace": {1: _META, 2: ("spec", "NamespaceSpec"), 3: ("status", "NamespaceStatus")},
    "NamespaceSpec": {1: ("finalizers", "repeated text")},
    "NamespaceStatus": {1: ("phase", "text")},
    "ConfigMap": {
        1: _META,
        2: ("data", "map"),
        3: ("binaryData", "bytes map"),
        4: ("immutable", "flag"),
    },
    "Secret": {
        1: _META,
        2: ("data", "bytes map"),
        3: ("type", "text"),
        4: ("stringData", "map"),
        5: ("immutable", "flag"),
    },
    "ServiceAccount": {1: _META, 4: ("automountServiceAccountToken", "flag")},
    "PriorityClass": {
        1: _META,
        2: ("value", "number"),
        3: ("globalDefault", "flag"),
        4: ("description", "text"),
        5: ("preemptionPolicy", "text"),
    },
    "PodDisruptionBudget": {1: _META, 2: ("spec", "BudgetSpec"), 3: ("", "ignored")},
    "BudgetSpec": {
        1: ("minAvailable", "IntOrString"),
        2: ("selector", "LabelSelector"),
        3: ("maxUnavailable", "IntOrString"),
        4: ("unhealthyPodEvictionPolicy", "text"),
    },
    "Deployment": {1: _META, 2: ("spec", "DeploymentSpec"), 3: ("", "ignored")},
    "DeploymentSpec": {
        1: ("replicas", "number"),
        2: ("selector", "LabelSelector"),
        3: ("template", "PodTemplateSpec"),
        4: ("strategy", "DeploymentStrategy"),
        5: ("minReadySeconds", "number"),
        6: ("revisionHistoryLimit", "number"),
        7: ("paused", "flag"),
        9: ("progressDeadlineSeconds", "number"),
    },
    "DeploymentStrategy": {1: ("type", "text"), 2: ("rollingUpdate", "RollingUpdate")},
    "RollingUpdate": {1: ("maxUnavailable", "IntOrString"), 2: ("maxSurge", "IntOrString")},
    "Job": {1: _META, 2: ("spec", "JobSpec"), 3: ("", "ignored")},
    "JobSpec": {
        1: ("parallelism", "number"),
        2: ("completions", "number"),
        3: ("activeDeadlineSeconds", "number"),
        4: ("selector", "LabelSelector"),
        5: ("manualSelector", "flag"),
        6: ("template", "PodTemplateSpec"),
        7: ("backoffLimit", "number"),
        8: ("ttlSecondsAfterFinished", "number"),
        9: ("completionMode", "text"),
        10: ("suspend", "flag"),
        12: ("backoffLimitPerIndex", "number"),
        13: ("maxFailedIndexes", "number"),
        14: ("podReplacementPolicy", "text"),
        15: ("managedBy", "text"),
    },
    "PodTemplateSpec": {1: _META, 2: ("spec", "PodSpec")},
    "DeleteOptions": {
        1: ("gracePeriodSeconds", "number"),
        2: ("preconditions", "Preconditions"),
        3: ("orphanDependents", "flag"),
        4: ("propagationPolicy", "text"),
        5: ("dryRun", "repeated text"),
    },
    "Preconditions": {1: ("uid", "text"), 2: ("resourceVersion", "text")},
    "Eviction": {1: _META, 2: ("deleteOptions", "DeleteOptions")},
    "SelfSubjectReview": {1: _META, 2: ("", "ignored")},
    "SelfSubjectAccessReview": {1: _META, 2: ("spec", "AccessReviewSpec"), 3: ("", "ignored")},
    "SelfSubjectRulesReview": {1: _META, 2: ("spec", "RulesReviewSpec"), 3: ("", "ignored")},
    "RulesReviewSpec": {1: ("namespace", "text")},
    "AccessReviewSpec": {
        1: ("resourceAttributes", "ResourceAttributes"),
        2: ("nonResourceAttributes", "PathAttributes"),
    },
    "ResourceAttributes": {
        1: ("namespace", "text"),
        2: ("verb", "text"),
        3: ("group", "text"),
        4: ("version", "text"),
        5: ("resource", "text"),
        6: ("subresource", "text"),
        7: ("name", "text"),
    },
    "PathAttributes": {1: ("path", "text"), 2: ("verb", "text")},
}


def decode_protobuf(body: bytes) -> Json:
    """A request body as the object its JSON would give.

    Raises:
        ApiError: 400, the body is no such message, or one with fields that are not known here.
    """
    if not body.startswith(_MAGIC):
        raise bad_request(
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
        )
    try:
        envelope = _decode_fields("Unknown", _UNKNOWN, body[len(_MAGIC) :])
        kind = envelope["typeMeta"]["kind"]
        fields = _MESSAGES.get(kind)
        if fields is None:
            raise bad_request(f"kind {kind} is not understood in protobuf here; send JSON")
        return {**envelope["typeMeta"], **_decode_fields(kind, fields, envelope.get("raw", b""))}
    except (IndexError, KeyError, UnicodeDecodeError) as error:
        raise bad_request(f"malformed protobuf: {error!r}") from error


def _decode_fields(message: str, fields: Fields, data: bytes) -> Json:
    decoded: Json = {}
    for number, value in _wire_fields(data):
        if number not in fields:
            raise bad_request(f"field {number} of {message} is not understood in protobuf here")
        name, type_ = fields[number]
        if type_ == "ignored" or (type_.endswith("text") and value == b"" and not name):
            continue
        _set(decoded, name, type_, value)
    return decoded


def _set(decoded: Json, name: str, type_: str, value: int | bytes) -> None:
    if type_.startswith(_REPEATED):
        decoded.setdefault(name, []).append(_value(type_.removeprefix(_REPEATED), value))
    elif type_.startswith(_INLINE):
        decoded |= _value(type_.removeprefix(_INLINE), value)
    elif type_ == "quantities":
        key, encoded = _map_entry(_as_bytes(value))
        decoded.setdefault(name, {})[key] = _value("Quantity", encoded)
    elif type_.endswith("map"):
        key, text = _map_entry(_as_bytes(value))
        shown = base64.b64encode(text) if type_ == "bytes map" else text
        decoded.setdefault(name, {})[key] = shown.decode()
    elif (found := _value(type_, value)) not in ("", None):
        decoded[name] = found


def _value(type_: str, value: int | bytes) -> Any:
    if type_ == "number":
        number = _as_number(value)
        return number - (1 << 64) if number >> 63 else number
    if type_ == "flag":
        return bool(value)
    data = _as_bytes(value)
    if type_ == "text":
        return data.decode()
    if type_ == "raw":
        return data
    if type_ == "Time":
        return _time(data)
    if type_ == "Quantity":
        return _as_bytes(dict(_wire_fields(data)).get(1, b"")).decode()
    if type_ == "IntOrString":
        found = dict(_wire_fields(data))
        return _as_bytes(found[3]).decode() if found.get(1) else _value("number", found.get(2, 0))
    return _decode_fields(type_, _MESSAGES[type_], data)


def _time(data: bytes) -> str | None:
    seconds = _as_number(dict(_wire_fields(data)).get(1, 0))
    return timestamp(seconds) if seconds else None


def _map_entry(data: bytes) -> tuple[str, bytes]:
    entry = dict(_wire_fields(data))
    return _as_bytes(entry.get(1, b"")).decode(), _as_bytes(entry.get(2, b""))


def _as_bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise KeyError("a number where text was expected")
    return value


def _as_number(value: int | bytes) -> int:
    if isinstance(value, bytes):
        raise KeyError("text where a number was expected")
    return value


def _wire_fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Field numbers and values; only varints and length-delimited fields occur in these types."""
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        wire_type = tag & 7
        if wire_type == 0:
            number, position = _varint(data, position)
            yield tag >> 3, number
        elif wire_type == 2:
            length, position = _varint(data, position)
            if position + length > len(data):
                raise IndexError("a field is longer than its message")
            yield tag >> 3, data[position : position + length]
            position += length
        else:
            raise KeyError(f"wire type {wire_type}")


def _varint(data: bytes, position: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        byte = data[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return result, position
        shift += 7
