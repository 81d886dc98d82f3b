"""Looks up the priority class of pods and pod groups."""

from simcluster.apiserver.errors import forbidden
from simcluster.kinds.resources import PRIORITY_CLASSES, Resource
from simcluster.store.store import Store
from simcluster.values import Json


def priority_class(
    store: Store, resource: Resource, name: str, class_name: str | None
) -> Json | None:
    """The class that an object names, or else the global default with the lowest value.

    Raises:
        ApiError: 403, there is no class of this name.
    """
    classes = store.collection(PRIORITY_CLASSES.stored_in)
    if class_name:
        stored = classes.get("", class_name)
        if stored is None:
            raise forbidden(resource, name, f"no PriorityClass with name {class_name} was found")
        return stored.obj
    defaults = [stored.obj for stored in classes if stored.obj.get("globalDefault")]
    return min(defaults, key=lambda found: int(found["value"]), default=None)


def check_priority(resource: Resource, name: str, spec: Json, value: int) -> None:
    """Refuse a number that contradicts the class.

    Raises:
        ApiError: 403.
    """
    if spec.get("priority", value) != value:
        why = (
            f"the integer value of priority ({spec['priority']}) must not be provided in "
            f"{resource.kind.lower()} spec; priority admission controller computed {value} from "
            "the given PriorityClass name"
        )
        raise forbidden(resource, name, why)
