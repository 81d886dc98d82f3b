"""Admission of pods and claims by the LimitRanges of their namespace (LimitRanger)."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from simcluster.apiserver.errors import forbidden
from simcluster.kinds.defaults.pod_resources import amount_text, amounts_together
from simcluster.kinds.resources import LIMIT_RANGES, PERSISTENT_VOLUME_CLAIMS, PODS, Resource
from simcluster.store.store import Store
from simcluster.values import Json
from stowage.api.values.quantity import quantity_milli_value

_ANNOTATION = "kubernetes.io/limit-ranger"
_KINDS = (("containers", "container"), ("initContainers", "init container"))
_SHARED = ("cpu", "memory")
_HUGE_PAGES = "hugepages-"


def fill_by_limit_ranges(store: Store, pod: Json) -> None:
    """Give containers the default requests and limits of their namespace."""
    for limit_range in _limit_ranges(store, pod):
        requests, limits = _defaults(limit_range, "defaultRequest"), _defaults(limit_range)
        filled: list[str] = []
        for field, noun in _KINDS:
            for container in pod["spec"].get(field) or ():
                resources = container.setdefault("resources", {})
                for kind, defaults in (("requests", requests), ("limits", limits)):
                    if names := _filled(resources, kind, defaults):
                        word = kind.removesuffix("s")
                        name = container.get("name", "")  # which is not validated yet
                        filled.append(f"{', '.join(names)} {word} for {noun} {name}")
        if filled:
            annotations = pod["metadata"].setdefault("annotations", {})
            annotations[_ANNOTATION] = f"LimitRanger plugin set: {'; '.join(filled)}"


def review_pod_limits(store: Store, pod: Json) -> None:
    """Refuse a pod that exceeds the limits of its namespace.

    Raises:
        ApiError: 403.
    """
    _review(store, PODS, pod, _pod_problems)


def review_claim_limits(store: Store, claim: Json) -> None:
    """Refuse a claim that requests more or less storage than its namespace allows.

    Raises:
        ApiError: 403.
    """
    _review(store, PERSISTENT_VOLUME_CLAIMS, claim, _claim_problems)


def review_claim_growth(store: Store, claim: Json, old: Json) -> None:
    """Refuse a change of a claim's requests beyond what its namespace allows.

    Raises:
        ApiError: 403.
    """
    if claim["spec"].get("resources") != old["spec"].get("resources"):
        review_claim_limits(store, claim)


def _limit_ranges(store: Store, obj: Json) -> Iterator[Json]:
    ranges = store.collection(LIMIT_RANGES.stored_in)
    for stored in ranges.items(obj["metadata"].get("namespace", "")) if len(ranges) else ():
        yield stored.obj


def _items(limit_range: Json) -> list[Json]:
    return (limit_range.get("spec") or {}).get("limits") or []


def _defaults(limit_range: Json, field: str = "default") -> Json:
    found: Json = {}
    for item in _items(limit_range):
        if item.get("type") == "Container":
            found |= item.get(field) or {}
    return found


def _filled(resources: Json, kind: str, defaults: Json) -> list[str]:
    """Add the defaults that are missing; their names."""
    own = resources.get(kind) or {}
    missing = sorted(name for name in defaults if name not in own)
    if missing:
        resources[kind] = {**own, **{name: defaults[name] for name in missing}}
    return missing


def _review(
    store: Store, resource: Resource, obj: Json, problems_of: Callable[[Json, Json], Iterator[str]]
) -> None:
    for limit_range in _limit_ranges(store, obj):
        problems = [problem for item in _items(limit_range) for problem in problems_of(item, obj)]
        texts = list(dict.fromkeys(problems))
        if texts:
            why = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
            raise forbidden(resource, obj["metadata"].get("name", ""), why)


class _Usage(NamedTuple):
    """What a container, a pod or a claim asks for, as quantities by resource."""

    limited: str
    requests: Json
    limits: Json


def _pod_problems(item: Json, pod: Json) -> Iterator[str]:
    spec = pod["spec"]
    if item.get("type") == "Pod":
        yield from _problems(
            item, _Usage("Pod", _pod_amounts(spec, "requests"), _pod_amounts(spec, "limits"))
        )
    elif item.get("type") == "Container":
        for field, _ in _KINDS:
            for container in spec.get(field) or ():
                own = container.get("resources") or {}
                requests, limits = own.get("requests") or {}, own.get("limits") or {}
                yield from _problems(item, _Usage("Container", requests, limits))


def _pod_amounts(spec: Json, kind: str) -> Json:
    """The amounts of a pod; its own stand for those of its containers."""
    together = amounts_together(spec, kind)
    found = {name: amount_text(name, amount) for name, amount in together.items()}
    own = (spec.get("resources") or {}).get(kind) or {}
    return found | {
        name: amount
        for name, amount in own.items()
        if name in _SHARED or name.startswith(_HUGE_PAGES)
    }


def _problems(item: Json, usage: _Usage) -> Iterator[str]:
    for check, field in ((_below, "min"), (_above, "max"), (_ratio, "maxLimitRequestRatio")):
        for name, bound in (item.get(field) or {}).items():
            yield from check(name, bound, usage)


def _claim_problems(item: Json, claim: Json) -> Iterator[str]:
    if item.get("type") != "PersistentVolumeClaim":
        return
    requests = (claim["spec"].get("resources") or {}).get("requests") or {}
    usage = _Usage("PersistentVolumeClaim", requests, {})
    for name, bound in (item.get("min") or {}).items():
        yield from _below(name, bound, usage)
    for name, bound in (item.get("max") or {}).items():
        begin = f"maximum {name} usage per {usage.limited} is {bound}"
        if name not in requests:
            yield f"{begin}.  No request is specified"
        elif _exceeds(requests[name], bound):
            yield f"{begin}, but request is {requests[name]}"


def _exceeds(amount: str, bound: str) -> bool:
    return quantity_milli_value(amount) > quantity_milli_value(bound)


def _below(name: str, bound: str, usage: _Usage) -> Iterator[str]:
    begin = f"minimum {name} usage per {usage.limited} is {bound}"
    request, limit = usage.requests.get(name), usage.limits.get(name)
    if request is None:
        yield f"{begin}.  No request is specified"
    elif _exceeds(bound, request):
        yield f"{begin}, but request is {request}"
    elif limit is not None and _exceeds(bound, limit):
        yield f"{begin}, but limit is {limit}"


def _above(name: str, bound: str, usage: _Usage) -> Iterator[str]:
    begin = f"maximum {name} usage per {usage.limited} is {bound}"
    request, limit = usage.requests.get(name), usage.limits.get(name)
    if limit is None:
        yield f"{begin}.  No limit is specified"
    elif _exceeds(limit, bound):
        yield f"{begin}, but limit is {limit}"
    elif request is not None and _exceeds(request, bound):
        yield f"{begin}, but request is {request}"


def _ratio(name: str, bound: str, usage: _Usage) -> Iterator[str]:
    begin = f"{name} max limit to request ratio per {usage.limited} is {bound}"
    request = quantity_milli_value(usage.requests.get(name, "0"))
    limit = quantity_milli_value(usage.limits.get(name, "0"))
    if not request:
        yield f"{begin}, but no request is specified or request is 0"
    elif not limit:
        yield f"{begin}, but no limit is specified or limit is 0"
    elif limit * 1000 > quantity_milli_value(bound) * request:
        yield f"{begin}, but provided ratio is {limit / request:f}"
