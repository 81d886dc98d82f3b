"""The extenders of a Policy: its field names may be in any case, its timeouts are nanoseconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from stowage.api.config.errors import ConfigError
from stowage.api.config.extender_validation import extender_errors
from stowage.api.config.types import Extender, ExtenderTLSConfig
from stowage.api.decoding.strict_decoding import decode_struct
from stowage.api.values.duration import Duration

_TLS = "tlsConfig"
_TIMEOUT = "httpTimeout"
_NANOSECONDS = 1e9


def converted_extenders(
    written: Sequence[Mapping[str, Any]], errors: list[ConfigError]
) -> list[dict[str, Any]]:
    """The extenders in the shape of a KubeSchedulerConfiguration.

    Args:
        written: The extenders of the Policy.
        errors: Receives the errors.
    """
    before = len(errors)
    converted = [_converted(each) for each in written]
    decoded = [
        decode_struct(each, Extender, f"extenders[{index}]", errors)
        for index, each in enumerate(converted)
    ]
    if len(errors) == before:
        errors += extender_errors(decoded)
    return converted


def _converted(written: Mapping[str, Any]) -> dict[str, Any]:
    extender = _renamed(written, Extender)
    if isinstance(extender.get(_TLS), Mapping):
        extender[_TLS] = _renamed(extender[_TLS], ExtenderTLSConfig)
    timeout = extender.get(_TIMEOUT)
    if isinstance(timeout, int) and not isinstance(timeout, bool):
        extender[_TIMEOUT] = str(Duration(timeout / _NANOSECONDS))
    return extender


def _renamed(written: Mapping[str, Any], struct: type[msgspec.Struct]) -> dict[str, Any]:
    """The fields with their names in `struct`; unknown fields keep theirs."""
    names = {
        field.encode_name.lower(): field.encode_name for field in msgspec.structs.fields(struct)
    }
    return {names.get(str(name).lower(), name): value for name, value in written.items()}
