"""Decodes request bodies in Kubernetes' protobuf, as kubectl's own subcommands send them.

``kubectl create namespace``, ``create deployment``, ``drain`` and the like post protobuf whatever
the server prefers; files are sent as JSON. Answers are always JSON, which these commands accept.
"""

import base64
from collections.abc import Iterator
from typing import Any

from simcluster.apiserver.errors import bad_request
from simcluster.clock import timestamp
from simcluster.protobuf.messages import RESERVED, Field, messages

Json = dict[str, Any]

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\0"


def decode_protobuf(body: bytes) -> Json:
    """A request body as the object that its JSON would give.

    Raises:
        ApiError: 400, the body is no such message, or it has fields that are not known here.
    """
    if not body.startswith(_MAGIC):
        raise bad_request(
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
        )
    try:
        envelope = _decode_message("Unknown", body[len(_MAGIC) :])
        kind = envelope["typeMeta"]["kind"]
        if kind not in messages():
            raise bad_request(f"kind {kind} is not understood in protobuf here; send JSON")
        return {**envelope["typeMeta"], **_decode_message(kind, envelope.get("raw", b""))}
    except (IndexError, KeyError, UnicodeDecodeError) as error:
        raise bad_request("malformed protobuf") from error


def _decode_message(message: str, data: bytes) -> Json:
    decoded: Json = {}
    for number, value in _wire_fields(data):
        field = messages()[message].get(number)
        if field is None:
            raise bad_request(f"field {number} of {message} is not understood in protobuf here")
        if field is not RESERVED:
            _set(decoded, field, value)
    return decoded


def _set(decoded: Json, field: Field, value: int | bytes) -> None:
    if field.type.startswith("map<"):
        entry = dict(_wire_fields(_as_bytes(value)))
        key, encoded = _as_bytes(entry.get(1, b"")).decode(), _as_bytes(entry.get(2, b""))
        inner = _value(field.type.removeprefix("map<string, ").removesuffix(">"), encoded)
        if isinstance(inner, bytes):
            inner = base64.b64encode(inner).decode()
        decoded.setdefault(field.name, {})[key] = inner
        return
    found = _value(field.type, value)
    if field.label == "repeated":
        decoded.setdefault(field.name, []).append(found)
    elif field.label == "inline":
        decoded |= found
    elif found not in ("", None):
        decoded[field.name] = found


def _value(type_: str, value: int | bytes) -> Any:
    if type_ == "int64":
        number = _as_number(value)
        return number - (1 << 64) if number >> 63 else number
    if type_ == "bool":
        return bool(value)
    data = _as_bytes(value)
    if type_ in {"string", "bytes"}:
        return data.decode() if type_ == "string" else data
    if type_ not in {"Time", "Quantity", "IntOrString"}:
        return _decode_message(type_, data)
    found = dict(_wire_fields(data))
    if type_ == "Time":
        seconds = _as_number(found.get(1, 0))
        return timestamp(seconds) if seconds else None
    if type_ == "Quantity":
        return _as_bytes(found.get(1, b"")).decode()
    return _as_bytes(found[3]).decode() if found.get(1) else _value("int64", found.get(2, 0))


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
