"""Defaults of the resources of a pod as a whole (PodLevelResources)."""

from simcluster.schema.scalars import canonical_quantity
from simcluster.values import Json
from stowage.api.values.quantity import quantity_milli_value

Amounts = dict[str, int]
"""Resource names to thousandths of their units."""

_HUGE_PAGES = "hugepages-"
_SHARED = ("cpu", "memory")


def default_pod_resources(spec: Json) -> None:
    """Fill ``spec.resources``, as ``SetDefaults_Pod`` does once the containers are filled.

    The limit of huge pages is the sum of the containers' requests. A pod with limits requests the
    sum of its containers' requests or, without any, its limits.
    """
    resources, together = spec["resources"], amounts_together(spec, "requests")
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for name, amount in together.items():
        if name.startswith(_HUGE_PAGES) and name not in limits:
            limits[name] = amount_text(name, amount)
    if not limits:
        return
    resources["limits"] = limits
    for name in _SHARED:
        if name in together:
            requests.setdefault(name, amount_text(name, together[name]))
    for name, limit in limits.items():
        if name in _SHARED or name.startswith(_HUGE_PAGES):
            requests.setdefault(name, limit)
    if requests:
        resources["requests"] = requests


def amounts_together(spec: Json, kind: str) -> Amounts:
    """The containers' requests or limits together, or the peak of the init containers if higher.

    Args:
        spec: of a pod.
        kind: ``requests`` or ``limits``.
    """
    running: Amounts = {}
    for container in spec.get("containers") or ():
        _add(running, _amounts(container, kind))
    sidecars: Amounts = {}
    highest: Amounts = {}
    for container in spec.get("initContainers") or ():
        asked = _amounts(container, kind)
        if container.get("restartPolicy") == "Always":
            _add(running, asked)
            _add(sidecars, asked)
            asked = dict(sidecars)
        else:
            _add(asked, sidecars)
        highest = {
            name: max(highest.get(name, 0), asked.get(name, 0)) for name in {*highest, *asked}
        }
    return {name: max(running.get(name, 0), highest.get(name, 0)) for name in {*running, *highest}}


def _amounts(container: Json, kind: str) -> Amounts:
    found = (container.get("resources") or {}).get(kind) or {}
    return {name: quantity_milli_value(amount) for name, amount in found.items()}


def _add(total: Amounts, more: Amounts) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def amount_text(name: str, milli: int) -> str:
    """An amount as a quantity; bytes as multiples of 1024 where they are."""
    if name != "cpu" and milli % (1024 * 1000) == 0:
        return canonical_quantity(f"{milli // (1024 * 1000)}Ki") or "0"
    return canonical_quantity(f"{milli}m") or "0"
