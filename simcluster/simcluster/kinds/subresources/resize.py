"""The subresource ``resize`` of a pod, which changes what its containers may use."""

from collections.abc import Iterator

from simcluster.apiserver.errors import FieldError, forbidden_field, invalid_value
from simcluster.kinds.defaults.pods import qos_class
from simcluster.validation.differences import pod_difference
from simcluster.validation.pods import POD_SPEC
from simcluster.validation.rules import check
from simcluster.values import Json

_KINDS = ("containers", "initContainers")
_MUTABLE = ("cpu", "memory")
_AMOUNTS = ("requests", "limits")


def resized(spec: Json, before: Json) -> Json:
    """The pod spec ``before`` with the resources that ``spec`` gives its containers."""
    new = dict(before)
    for kind in _KINDS:
        asked = {container.get("name"): container for container in spec.get(kind) or ()}
        if kind in before:
            new[kind] = [
                {**container, "resources": asked[container["name"]].get("resources") or {}}
                if container["name"] in asked
                else container
                for container in before[kind]
            ]
    return new


def resize_errors(asked: Json, new: Json, old: Json) -> list[FieldError]:
    """Errors of a resize.

    Args:
        asked: the spec of the request.
        new: the pod with its new resources.
        old: the stored pod.
    """
    found = list(check(new["spec"], "spec", POD_SPEC))
    quality = qos_class(new["spec"])
    if quality != (old.get("status") or {}).get("qosClass"):
        detail = "Pod QOS Class may not change as a result of resizing"
        found.append(invalid_value("spec", quality, detail))
    disordered = list(_order_errors(asked, old["spec"]))
    if disordered:
        return [*found, *disordered]
    for kind in _KINDS:
        found += _removals(kind, new["spec"], old["spec"])
    kept = _with_free_amounts(old["spec"], new["spec"])
    if kept != old["spec"]:
        why = f"only cpu and memory resources are mutable\n{pod_difference(old['spec'], kept)}"
        found.append(forbidden_field("spec", why))
    return [*found, *_init_errors(new["spec"], old["spec"])]


def _order_errors(asked: Json, before: Json) -> Iterator[FieldError]:
    for kind in _KINDS:
        names = [container.get("name") for container in asked.get(kind) or ()]
        known = [container["name"] for container in before.get(kind) or ()]
        if len(names) != len(known):
            detail = f"{kind} may not be added or removed on resize"
            yield forbidden_field(f"spec.{kind}", detail)
            continue
        for position, name in enumerate(names):
            if name != known[position]:
                detail = f"{kind} may not be renamed or reordered on resize"
                yield forbidden_field(f"spec.{kind}[{position}].name", detail)


def _resources(container: Json) -> Json:
    return container.get("resources") or {}


def _removals(kind: str, spec: Json, before: Json) -> Iterator[FieldError]:
    pairs = zip(before.get(kind) or (), spec.get(kind) or (), strict=True)
    for position, (old, new) in enumerate(pairs):
        for amounts in _AMOUNTS:
            kept = _resources(new).get(amounts) or {}
            if any(name not in kept for name in _resources(old).get(amounts) or ()):
                path = f"spec.{kind}[{position}].resources.{amounts}"
                yield forbidden_field(path, f"resource {amounts} cannot be removed")


def _with_free_amounts(before: Json, spec: Json) -> Json:
    """The new spec with the cpu and memory of the old one, which may change."""
    shown = dict(spec)
    for kind in _KINDS:
        if kind in spec:
            shown[kind] = [
                _with_old_amounts(new, old)
                for old, new in zip(before[kind], spec[kind], strict=True)
            ]
    return shown


def _with_old_amounts(new: Json, old: Json) -> Json:
    resources = dict(_resources(new))
    for amounts in _AMOUNTS:
        fixed = {
            name: amount
            for name, amount in (resources.pop(amounts, None) or {}).items()
            if name not in _MUTABLE
        }
        free = {
            name: amount
            for name, amount in (_resources(old).get(amounts) or {}).items()
            if name in _MUTABLE
        }
        if fixed or free:
            resources[amounts] = {**free, **fixed}
    return {**new, "resources": resources}


def _init_errors(spec: Json, before: Json) -> Iterator[FieldError]:
    pairs = zip(before.get("initContainers") or (), spec.get("initContainers") or (), strict=True)
    for position, (old, new) in enumerate(pairs):
        if old.get("restartPolicy") != "Always" and _resources(old) != _resources(new):
            path = f"spec.initContainers[{position}].resources"
            detail = "resources for non-sidecar init containers are immutable"
            yield forbidden_field(path, detail)
