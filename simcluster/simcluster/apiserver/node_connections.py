"""Errors of logs, shells and proxies: requests that need a kubelet, and no kubelet listens."""

from collections.abc import Mapping, Sequence
from typing import Any

from simcluster.apiserver import errors
from simcluster.apiserver.errors import ApiError, FieldError, invalid_value

Json = dict[str, Any]

_NOT_NEGATIVE = "must be greater than or equal to 0"
_POSITIVE = "must be greater than 0"
_BOUNDS = (("sinceSeconds", 1), ("tailLines", 0), ("limitBytes", 1))
_KUBELET_PORT = 10250


def check_log(pod: Json, query: Mapping[str, str]) -> None:
    """Check a request for a log.

    Raises:
        ApiError: 422, a number is out of range; 400, the container is missing or unknown.
    """
    name = pod["metadata"]["name"]
    found = [error for field, least in _BOUNDS for error in _out_of_range(query, field, least)]
    if found:
        raise errors.invalid("", "PodLogOptions", name, found)
    _check_container(pod, query.get("container", ""))


def _out_of_range(query: Mapping[str, str], field: str, least: int) -> list[FieldError]:
    text = query.get(field)
    if text is None:
        return []
    try:
        value = int(text)
    except ValueError as error:
        why = f'strconv.ParseInt: parsing "{text}": invalid syntax'
        raise errors.bad_request(why) from error
    if value >= least:
        return []
    return [invalid_value(field, value, _POSITIVE if least else _NOT_NEGATIVE)]


def _check_container(pod: Json, container: str) -> None:
    name, spec = pod["metadata"]["name"], pod["spec"]
    own = _names(spec.get("containers"))
    if not container and len(own) > 1:
        message = f"a container name must be specified for pod {name}, choose one of: {_list(own)}"
        if init := _names(spec.get("initContainers")):
            message += f" or one of the init containers: {_list(init)}"
        raise errors.bad_request(message)
    others = (spec.get("initContainers"), spec.get("ephemeralContainers"))
    known = (*own, *(each for listed in others for each in _names(listed)))
    if container and container not in known:
        raise errors.bad_request(f"container {container} is not valid for pod {name}")


def _names(containers: Sequence[Json] | None) -> list[str]:
    return [each["name"] for each in containers or ()]


def _list(names: Sequence[str]) -> str:
    return f"[{' '.join(names)}]"


def object_behind(name: str) -> str:
    """The object that a name in a proxy's path addresses: ``pod`` for ``https:pod:8443``."""
    parts = name.split(":")
    return parts[1] if len(parts) == 3 else parts[0]


def not_connected(
    plural: str, obj: Json, asked: str, *, subresource: str, upgrades: bool
) -> ApiError:
    """The error of an attempt to reach a pod, a node or a service.

    Args:
        plural: of the resource.
        obj: the object.
        asked: its name in the path, maybe with a port.
        subresource: exec, attach, portforward or proxy.
        upgrades: the request asks for another protocol.
    """
    if plural == "services":
        why = f'no endpoints available for service "{asked}"'
        return ApiError(503, "ServiceUnavailable", why)
    if subresource == "proxy":
        return _unreachable(plural, obj)
    node_name = obj["spec"].get("nodeName")
    if not node_name:
        return errors.bad_request(f"pod {asked} does not have a host assigned")
    if not upgrades:
        return errors.bad_request("Upgrade request required")
    return ApiError(500, "", "error dialing backend: connection refused")


def _unreachable(plural: str, obj: Json) -> ApiError:
    status = obj.get("status") or {}
    if plural == "nodes":
        addresses = [each["address"] for each in status.get("addresses") or ()]
        address, port = next(iter(addresses), obj["metadata"]["name"]), _KUBELET_PORT
    else:
        address, port = status.get("podIP") or "", 80
        if not address:
            return errors.bad_request("address not allowed")
    why = f"error trying to reach service: dial tcp {address}:{port}: connect: connection refused"
    return ApiError(503, "ServiceUnavailable", why)
