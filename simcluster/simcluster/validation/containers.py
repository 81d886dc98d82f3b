"""Containers of a pod: names, images, ports, variables, mounts, probes."""

from collections.abc import Callable, Sequence
from typing import Any

from simcluster.apiserver.errors import (
    FieldError,
    duplicate_value,
    forbidden_field,
    invalid_value,
    not_found_value,
    required,
    unsupported_value,
)
from simcluster.validation import names
from simcluster.validation.resources import validate_requirements

Json = dict[str, Any]

_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
_SCHEMES = ("HTTP", "HTTPS")
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_ONE_SOURCE = "may not have more than one field specified at a time"


def validate_containers(spec: Json, path: str) -> list[FieldError]:
    """Errors of all containers of a pod spec, init containers last."""
    volumes = {volume.get("name", ""): volume for volume in spec.get("volumes") or ()}
    containers = spec.get("containers") or []
    found: list[FieldError] = []
    if not containers:
        found.append(required(f"{path}.containers"))
    seen: set[str] = set()
    for position, container in enumerate(containers):
        place = f"{path}.containers[{position}]"
        found += _validate_common(container, volumes, place)
        if container.get("name", "") in seen:
            found.append(duplicate_value(f"{place}.name", container.get("name", "")))
        seen.add(container.get("name", ""))
        found += _validate_lifecycle_and_probes(container, place)
        if "restartPolicy" in container:
            detail = "may not be set for non-init containers"
            found.append(forbidden_field(f"{place}.restartPolicy", detail))
    found += _validate_host_ports(containers, f"{path}.containers")
    return found + _validate_init_containers(spec, volumes, seen, f"{path}.initContainers")


def _validate_init_containers(
    spec: Json, volumes: Json, seen: set[str], path: str
) -> list[FieldError]:
    found: list[FieldError] = []
    for position, container in enumerate(spec.get("initContainers") or ()):
        place, name = f"{path}[{position}]", container.get("name", "")
        found += _validate_common(container, volumes, place)
        policy = container.get("restartPolicy")
        if policy not in {None, "Always"}:
            found.append(unsupported_value(f"{place}.restartPolicy", policy, ("Always",)))
        if name in seen:
            found.append(duplicate_value(f"{place}.name", name))
        elif name:
            seen.add(name)
        found += _validate_host_ports([container], path)
        if policy == "Always":
            found += _validate_lifecycle_and_probes(container, place)
            continue
        detail = "may not be set for init containers without restartPolicy=Always"
        found += [
            forbidden_field(f"{place}.{field}", detail)
            for field in ("lifecycle", *_PROBES)
            if field in container
        ]
    return found


def _validate_common(container: Json, volumes: Json, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    name = container.get("name", "")
    if name:
        found += [invalid_value(f"{path}.name", name, message) for message in names.dns_label(name)]
    else:
        found.append(required(f"{path}.name"))
    if not container.get("image"):
        found.append(required(f"{path}.image"))
    policy = container.get("terminationMessagePolicy", "File")
    if policy not in _MESSAGE_POLICIES:
        place = f"{path}.terminationMessagePolicy"
        found.append(unsupported_value(place, policy, _MESSAGE_POLICIES))
    found += _validate_ports(container.get("ports") or (), f"{path}.ports")
    found += _validate_env(container.get("env") or (), f"{path}.env")
    found += _validate_env_from(container.get("envFrom") or (), f"{path}.envFrom")
    found += _validate_mounts(container.get("volumeMounts") or (), volumes, f"{path}.volumeMounts")
    pull = container.get("imagePullPolicy", "Always")
    if pull not in _PULL_POLICIES:
        found.append(unsupported_value(f"{path}.imagePullPolicy", pull, _PULL_POLICIES))
    return found + validate_requirements(container.get("resources") or {}, f"{path}.resources")


def _validate_ports(ports: Sequence[Json], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[str] = set()
    for position, port in enumerate(ports):
        place, name = f"{path}[{position}]", port.get("name", "")
        if name:
            messages = names.port_name(name)
            found += [invalid_value(f"{place}.name", name, message) for message in messages]
            if name in seen and not messages:
                found.append(duplicate_value(f"{place}.name", name))
            seen.add(name)
        number = port.get("containerPort", 0)
        if not number:
            found.append(required(f"{place}.containerPort"))
        else:
            found += _port_errors(number, f"{place}.containerPort")
        if port.get("hostPort"):
            found += _port_errors(port["hostPort"], f"{place}.hostPort")
        protocol = port.get("protocol", "TCP")
        if protocol not in _PROTOCOLS:
            found.append(unsupported_value(f"{place}.protocol", protocol, _PROTOCOLS))
    return found


def _port_errors(number: int, path: str) -> list[FieldError]:
    return [invalid_value(path, number, message) for message in names.port_number(number)]


def _validate_host_ports(containers: Sequence[Json], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[str] = set()
    for position, container in enumerate(containers):
        for index, port in enumerate(container.get("ports") or ()):
            if not port.get("hostPort"):
                continue
            text = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{port['hostPort']}"
            if text in seen:
                place = f"{path}[{position}].ports[{index}].hostPort"
                found.append(duplicate_value(place, text))
            seen.add(text)
    return found


def _validate_env(variables: Sequence[Json], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    for position, variable in enumerate(variables):
        place, name = f"{path}[{position}]", variable.get("name", "")
        if name:
            messages = names.environment_name(name)
            found += [invalid_value(f"{place}.name", name, message) for message in messages]
        else:
            found.append(required(f"{place}.name"))
        if "valueFrom" in variable:
            found += _validate_value_from(variable, f"{place}.valueFrom")
    return found


def _validate_value_from(variable: Json, path: str) -> list[FieldError]:
    source = variable["valueFrom"]
    found: list[FieldError] = []
    if "fieldRef" in source and not source["fieldRef"].get("fieldPath"):
        found.append(required(f"{path}.fieldRef.fieldPath"))
    for kind in ("configMapKeyRef", "secretKeyRef"):
        if kind in source:
            found += _validate_key_reference(source[kind], f"{path}.{kind}")
    known = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
    count = sum(kind in source for kind in known)
    if not count:
        detail = (
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, "
            "`secretKeyRef` or `fileKeyRef`"
        )
        found.append(invalid_value(path, "", detail))
    elif variable.get("value"):
        detail = "may not be specified when `value` is not empty"
        found.append(invalid_value(path, "", detail))
    elif count > 1:
        found.append(invalid_value(path, "", _ONE_SOURCE))
    return found


def _validate_key_reference(reference: Json, path: str) -> list[FieldError]:
    name, key = reference.get("name", ""), reference.get("key", "")
    found = [invalid_value(f"{path}.name", name, message) for message in names.dns_subdomain(name)]
    if not key:
        return [*found, required(f"{path}.key")]
    return found + [invalid_value(f"{path}.key", key, each) for each in names.config_key(key)]


def _validate_env_from(sources: Sequence[Json], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    for position, source in enumerate(sources):
        kinds = [kind for kind in ("configMapRef", "secretRef") if kind in source]
        found += [
            required(f"{path}[{position}].{kind}.name")
            for kind in kinds
            if not source[kind].get("name")
        ]
        if not kinds:
            detail = "must specify one of: `configMapRef` or `secretRef`"
            found.append(invalid_value(path, "", detail))
        elif len(kinds) > 1:
            found.append(invalid_value(path, "", _ONE_SOURCE))
    return found


def _validate_mounts(mounts: Sequence[Json], volumes: Json, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[str] = set()
    for position, mount in enumerate(mounts):
        place, name = f"{path}[{position}]", mount.get("name", "")
        where = mount.get("mountPath", "")
        if not name:
            found.append(required(f"{place}.name"))
        if name not in volumes:
            found.append(not_found_value(f"{place}.name", name))
        if not where:
            found.append(required(f"{place}.mountPath"))
        if where in seen:
            found.append(invalid_value(f"{place}.mountPath", where, "must be unique"))
        seen.add(where)
        inside = mount.get("subPath", "")
        if inside.startswith("/"):
            found.append(invalid_value(f"{path}.subPath", inside, "must be a relative path"))
        if ".." in inside.split("/"):
            found.append(invalid_value(f"{path}.subPath", inside, "must not contain '..'"))
    return found


def _validate_lifecycle_and_probes(container: Json, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    for hook in ("postStart", "preStop"):
        handler = (container.get("lifecycle") or {}).get(hook)
        if handler is not None:
            found += _validate_handler(handler, f"{path}.lifecycle.{hook}")
    for kind in _PROBES:
        probe = container.get(kind)
        if probe is not None:
            found += _validate_probe(probe, kind, f"{path}.{kind}")
    return found


def _validate_probe(probe: Json, kind: str, path: str) -> list[FieldError]:
    found = _validate_handler(probe, path)
    for field in (
        "initialDelaySeconds",
        "timeoutSeconds",
        "periodSeconds",
        "successThreshold",
        "failureThreshold",
    ):
        if probe.get(field, 0) < 0:
            detail = "must be greater than or equal to 0"
            found.append(invalid_value(f"{path}.{field}", probe[field], detail))
    grace = probe.get("terminationGracePeriodSeconds")
    if grace is not None and grace <= 0:
        place = f"{path}.terminationGracePeriodSeconds"
        found.append(invalid_value(place, grace, "must be greater than 0"))
    if kind == "readinessProbe":
        if grace is not None:
            place = f"{path}.terminationGracePeriodSeconds"
            found.append(invalid_value(place, grace, "must not be set for readinessProbes"))
    elif probe.get("successThreshold", 1) != 1:
        count = probe["successThreshold"]
        found.append(invalid_value(f"{path}.successThreshold", count, "must be 1"))
    return found


def _validate_handler(handler: Json, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    kinds = [kind for kind in _HANDLERS if kind in handler]
    if not kinds:
        return [required(path, "must specify a handler type")]
    for kind in kinds[1:]:
        detail = "may not specify more than 1 handler type"
        found.append(forbidden_field(f"{path}.{kind}", detail))
    check = _HANDLER_CHECKS.get(kinds[0])
    return found + check(handler[kinds[0]], f"{path}.{kinds[0]}") if check else found


def _validate_exec(action: Json, path: str) -> list[FieldError]:
    return [] if action.get("command") else [required(f"{path}.command")]


def _validate_http(action: Json, path: str) -> list[FieldError]:
    found = [] if action.get("path") else [required(f"{path}.path")]
    found += validate_port_or_name(action.get("port", 0), f"{path}.port")
    scheme = action.get("scheme", "HTTP")
    if scheme not in _SCHEMES:
        found.append(unsupported_value(f"{path}.scheme", scheme, _SCHEMES))
    return found


def _validate_tcp(action: Json, path: str) -> list[FieldError]:
    return validate_port_or_name(action.get("port", 0), f"{path}.port")


_HANDLER_CHECKS: dict[str, Callable[[Json, str], list[FieldError]]] = {
    "exec": _validate_exec,
    "httpGet": _validate_http,
    "tcpSocket": _validate_tcp,
    "grpc": _validate_tcp,
}


def validate_port_or_name(port: int | str, path: str) -> list[FieldError]:
    """Errors of a port given by number or name."""
    messages = names.port_name(port) if isinstance(port, str) else names.port_number(port)
    return [invalid_value(path, port, message) for message in messages]
