"""Admission of pods by their RuntimeClass: its overhead, and where its nodes are."""

from simcluster.apiserver.errors import forbidden
from simcluster.kinds.resources import PODS, RUNTIME_CLASSES
from simcluster.schema.scalars import canonical_quantity
from simcluster.store.store import Store
from simcluster.values import Json


def admit_runtime_class(store: Store, pod: Json) -> None:
    """Give a pod the overhead, the node selector and the tolerations of its RuntimeClass.

    Raises:
        ApiError: 403, there is no such class, or the pod contradicts it.
    """
    runtime_class = _runtime_class(store, pod)
    if runtime_class is None:
        return
    spec, overhead = pod["spec"], _overhead(runtime_class)
    if overhead is not None:
        _check_overhead(pod, overhead)
        if overhead:
            spec["overhead"] = overhead
    scheduling = runtime_class.get("scheduling")
    if scheduling is not None:
        _add_selector(pod, scheduling.get("nodeSelector") or {})
        spec["tolerations"] = merged_tolerations(
            [*(spec.get("tolerations") or ()), *(scheduling.get("tolerations") or ())]
        )


def review_overhead(store: Store, pod: Json) -> None:
    """Refuse a pod that has an overhead without a class that gives it.

    Raises:
        ApiError: 403.
    """
    if not pod["spec"].get("overhead"):
        return
    runtime_class = _runtime_class(store, pod)
    if runtime_class is None or _overhead(runtime_class) is None:
        why = "Pod Overhead set without corresponding RuntimeClass defined Overhead"
        raise forbidden(PODS, pod["metadata"].get("name", ""), f"pod rejected: {why}")


def _runtime_class(store: Store, pod: Json) -> Json | None:
    class_name = pod["spec"].get("runtimeClassName")
    if class_name is None:
        return None
    stored = store.get(RUNTIME_CLASSES.stored_in, "", class_name)
    if stored is None:
        why = f'pod rejected: RuntimeClass "{class_name}" not found'
        raise forbidden(PODS, pod["metadata"].get("name", ""), why)
    return stored.obj


def _overhead(runtime_class: Json) -> Json | None:
    """The overhead of a pod; ``None`` where the class defines none."""
    overhead = runtime_class.get("overhead")
    return None if overhead is None else dict(overhead.get("podFixed") or {})


def _check_overhead(pod: Json, overhead: Json) -> None:
    own = pod["spec"].get("overhead")
    if own and _canonical(own) != _canonical(overhead):
        why = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
        raise forbidden(PODS, pod["metadata"].get("name", ""), why)


def _canonical(amounts: Json) -> Json:
    return {name: canonical_quantity(amount) for name, amount in amounts.items()}


def _add_selector(pod: Json, selector: Json) -> None:
    own = pod["spec"].get("nodeSelector") or {}
    for key, value in selector.items():
        if own.get(key, value) != value:
            why = (
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                f"pod.spec.nodeSelector[{key}] = {own[key]}"
            )
            raise forbidden(PODS, pod["metadata"].get("name", ""), why)
    if selector:
        pod["spec"]["nodeSelector"] = {**own, **selector}


def merged_tolerations(tolerations: list[Json]) -> list[Json]:
    """Tolerations without those that another one includes; of equal ones the first stays."""
    merged: list[Json] = []
    for position, found in enumerate(tolerations):
        later = (other for other in tolerations[position + 1 :] if other != found)
        if not any(_includes(other, found) for other in (*merged, *later)):
            merged.append(found)
    return merged


def _includes(whole: Json, part: Json) -> bool:
    """Whether a toleration tolerates everything that another one does."""
    if whole == part:
        return True
    operator, key, effect = whole.get("operator"), whole.get("key"), whole.get("effect")
    if key != part.get("key") and (key or operator != "Exists"):
        return False
    if effect and effect != part.get("effect"):
        return False
    seconds = whole.get("tolerationSeconds")
    if effect == "NoExecute" and seconds is not None:
        own = part.get("tolerationSeconds")
        if own is None or own > seconds:
            return False
    if operator == "Exists":
        return True
    # Upstream takes no part without an operator as included, though it means Equal.
    is_equal = operator in {None, "", "Equal"} and part.get("operator") == "Equal"
    return is_equal and (part.get("value") or "") == (whole.get("value") or "")
