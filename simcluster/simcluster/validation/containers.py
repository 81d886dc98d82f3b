"""Containers of a pod: names, images, ports, variables, mounts, probes."""

from collections.abc import Sequence

from simcluster.apiserver import errors
from simcluster.validation import names, rules
from simcluster.validation.resources import requirements
from simcluster.validation.rules import Errors, Rule
from simcluster.values import Json

_MAX_RESTART_RULES = 20
_MAX_EXIT_CODES = 255
_ONE_SOURCE = "may not have more than one field specified at a time"


def port(field: str, *, fallback: str = "") -> Rule:
    """A port given by number or name; another field stands in for it where it is not set."""

    def rule(obj: Json, path: str) -> Errors:
        value = obj.get(field) or obj.get(fallback) or 0
        form = names.port_name if isinstance(value, str) else names.port_number
        return rules.named(value, form, f"{path}.{field}")

    return rule


_HANDLERS: dict[str, tuple[Rule, ...]] = {
    "exec": (rules.need("command"),),
    "httpGet": (rules.need("path"), port("port"), rules.one_of("scheme", "HTTP", "HTTPS")),
    "tcpSocket": (port("port"),),
    "grpc": (port("port"),),
    "sleep": (),
}


def _handler(action: Json, path: str) -> Errors:
    kinds = [kind for kind in _HANDLERS if kind in action]
    if not kinds:
        yield errors.required(path, "must specify a handler type")
        return
    for kind in kinds[1:]:
        yield errors.forbidden_field(f"{path}.{kind}", "may not specify more than 1 handler type")
    yield from rules.check(action[kinds[0]], f"{path}.{kinds[0]}", _HANDLERS[kinds[0]])


_GRACE = "terminationGracePeriodSeconds"
_PROBE = (
    _handler,
    *rules.not_negative(
        "initialDelaySeconds",
        "timeoutSeconds",
        "periodSeconds",
        "successThreshold",
        "failureThreshold",
    ),
    rules.holds(_GRACE, lambda seconds: seconds > 0, "must be greater than 0"),
)
_ONE_SUCCESS = rules.holds("successThreshold", lambda number: number == 1, "must be 1")
_NO_GRACE = rules.holds(_GRACE, lambda _: False, "must not be set for readinessProbes")
_LIFECYCLE: tuple[Rule, ...] = (
    rules.inside(
        "lifecycle", rules.inside("postStart", _handler), rules.inside("preStop", _handler)
    ),
    rules.inside("livenessProbe", *_PROBE, _ONE_SUCCESS),
    rules.inside("readinessProbe", *_PROBE, _NO_GRACE),
    rules.inside("startupProbe", *_PROBE, _ONE_SUCCESS),
)
_NO_LIFECYCLE: tuple[Rule, ...] = tuple(
    rules.absent(field, "may not be set for init containers without restartPolicy=Always")
    for field in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")
)


def _ports(container: Json, path: str) -> Errors:
    seen: set[str] = set()
    for position, entry in enumerate(container.get("ports") or ()):
        place, name = f"{path}.ports[{position}]", entry.get("name", "")
        if name:
            yield from rules.named(name, names.port_name, f"{place}.name")
            if name in seen and not names.port_name(name):
                yield errors.duplicate_value(f"{place}.name", name)
            seen.add(name)
        yield from rules.check(entry, place, _PORT)


_PORT = (
    rules.need_form("containerPort", names.port_number),
    rules.has_form("hostPort", names.port_number),
    rules.one_of("protocol", "SCTP", "TCP", "UDP"),
)


def _host_ports(containers: Sequence[Json], path: str) -> Errors:
    seen: set[str] = set()
    for position, container in enumerate(containers):
        for index, entry in enumerate(container.get("ports") or ()):
            if not entry.get("hostPort"):
                continue
            text = f"{entry.get('protocol', '')}/{entry.get('hostIP', '')}/{entry['hostPort']}"
            if text in seen:
                yield errors.duplicate_value(f"{path}[{position}].ports[{index}].hostPort", text)
            seen.add(text)


_KEY_REFERENCE = (
    rules.has_form("name", names.dns_subdomain, always=True),
    rules.need_form("key", names.config_key),
)
_SOURCES = (
    rules.inside("fieldRef", rules.need("fieldPath")),
    rules.inside("configMapKeyRef", *_KEY_REFERENCE),
    rules.inside("secretKeyRef", *_KEY_REFERENCE),
)
_SOURCE_KINDS = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")


def _value_from(variable: Json, path: str) -> Errors:
    source, place = variable.get("valueFrom"), f"{path}.valueFrom"
    if source is None:
        return
    yield from rules.check(source, place, _SOURCES)
    count = sum(kind in source for kind in _SOURCE_KINDS)
    if not count:
        detail = (
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, "
            "`secretKeyRef` or `fileKeyRef`"
        )
        yield errors.invalid_value(place, "", detail)
    elif variable.get("value"):
        yield errors.invalid_value(place, "", "may not be specified when `value` is not empty")
    elif count > 1:
        yield errors.invalid_value(place, "", _ONE_SOURCE)


def _env_from(container: Json, path: str) -> Errors:
    place = f"{path}.envFrom"
    for position, source in enumerate(container.get("envFrom") or ()):
        kinds = [kind for kind in ("configMapRef", "secretRef") if kind in source]
        for kind in kinds:
            yield from rules.need("name")(source[kind], f"{place}[{position}].{kind}")
        if not kinds:
            detail = "must specify one of: `configMapRef` or `secretRef`"
            yield errors.invalid_value(place, "", detail)
        elif len(kinds) > 1:
            yield errors.invalid_value(place, "", _ONE_SOURCE)


def _mounts(volumes: set[str]) -> Rule:
    def rule(container: Json, path: str) -> Errors:
        seen: set[str] = set()
        for position, mount in enumerate(container.get("volumeMounts") or ()):
            place, name = f"{path}.volumeMounts[{position}]", mount.get("name", "")
            where, inner = mount.get("mountPath", ""), mount.get("subPath", "")
            yield from rules.need("name")(mount, place)
            if name not in volumes:
                yield errors.not_found_value(f"{place}.name", name)
            yield from rules.need("mountPath")(mount, place)
            if where in seen:
                yield errors.invalid_value(f"{place}.mountPath", where, "must be unique")
            seen.add(where)
            sub_path = f"{path}.volumeMounts.subPath"
            if inner.startswith("/"):
                yield errors.invalid_value(sub_path, inner, "must be a relative path")
            if ".." in inner.split("/"):
                yield errors.invalid_value(sub_path, inner, "must not contain '..'")

    return rule


_BEFORE_MOUNTS = (
    rules.need_form("name", names.dns_label),
    rules.need("image"),
    rules.one_of("terminationMessagePolicy", "File", "FallbackToLogsOnError"),
    _ports,
    rules.each("env", rules.need_form("name", names.environment_name), _value_from),
    _env_from,
)
_AFTER_MOUNTS = (
    rules.one_of("imagePullPolicy", "Always", "IfNotPresent", "Never"),
    rules.inside("resources", requirements),
)


def _exit_codes(rule: Json, path: str) -> Errors:
    exit_codes, place = rule.get("exitCodes"), f"{path}.exitCodes"
    if exit_codes is None:
        yield errors.required(place, "must be specified")
        return
    values = exit_codes.get("values") or ()
    if exit_codes.get("operator") not in ("In", "NotIn"):
        operator = exit_codes.get("operator", "")
        yield errors.unsupported_value(f"{place}.operator", operator, ("In", "NotIn"))
    if len(values) > _MAX_EXIT_CODES:
        yield errors.too_many(f"{place}.values", len(values), _MAX_EXIT_CODES)


_RESTART = (
    rules.one_of("restartPolicy", "Always", "Never", "OnFailure"),
    rules.each(
        "restartPolicyRules",
        rules.one_of("action", "Restart", "RestartAllContainers"),
        _exit_codes,
    ),
)


def _restart(container: Json, path: str) -> Errors:
    """Errors of what the container does when it exits (ContainerRestartRules)."""
    listed = container.get("restartPolicyRules") or ()
    if listed and not container.get("restartPolicy"):
        detail = "must specify restartPolicy when restart rules are used"
        yield errors.required(f"{path}.restartPolicy", detail)
        return
    if len(listed) > _MAX_RESTART_RULES:
        yield errors.too_many(f"{path}.restartPolicyRules", len(listed), _MAX_RESTART_RULES)
    yield from rules.check(container, path, _RESTART)


def _init_host_ports(container: Json, path: str) -> Errors:
    return _host_ports([container], path.rpartition("[")[0])


def _init_lifecycle(container: Json, path: str) -> Errors:
    is_sidecar = container.get("restartPolicy") == "Always"
    return rules.check(container, path, _LIFECYCLE if is_sidecar else _NO_LIFECYCLE)


def containers(spec: Json, path: str) -> Errors:
    """Errors of all containers of a pod spec, init containers last."""
    volumes = {volume.get("name", "") for volume in spec.get("volumes") or ()}
    common = (*_BEFORE_MOUNTS, _mounts(volumes), *_AFTER_MOUNTS)
    each_container = rules.each(
        "containers", *common, rules.Distinct("name"), *_LIFECYCLE, _restart
    )
    yield from rules.need("containers")(spec, path)
    yield from each_container(spec, path)
    listed = spec.get("containers") or ()
    yield from _host_ports(listed, f"{path}.containers")
    taken = {container.get("name", "") for container in listed}
    yield from rules.each(
        "initContainers",
        *common,
        _restart,
        rules.Distinct("name", taken, counts_empty=False),
        _init_host_ports,
        _init_lifecycle,
    )(spec, path)
