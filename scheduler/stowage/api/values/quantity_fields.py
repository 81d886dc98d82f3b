"""Finds the invalid quantity of a pod, for an error that names its field."""

from stowage.api.decoding.errors import QUANTITY_EXPECTATION, InvalidObject, QuantityError
from stowage.api.objects.meta import Quantities
from stowage.api.objects.pod import Pod
from stowage.api.values.quantity import quantity_nano_value


def unreadable_quantity(pod: Pod) -> InvalidObject:
    """The error for the first invalid quantity of a pod; the pod must have one."""
    field, text = next(
        (field, text)
        for field, quantities in _quantity_fields(pod)
        for field, text in ((f"{field}[{name}]", text) for name, text in quantities.items())
        if not _is_readable(text)
    )
    name, uid = pod.metadata.namespaced_name, pod.metadata.uid
    return InvalidObject("Pod", name, field, str(text), QUANTITY_EXPECTATION, uid)


def _is_readable(text: str | int | float) -> bool:
    try:
        quantity_nano_value(text)
    except QuantityError:
        return False
    return True


def _quantity_fields(pod: Pod) -> list[tuple[str, Quantities]]:
    fields: list[tuple[str, Quantities]] = []
    for group, containers in (
        ("spec.containers", pod.spec.containers),
        ("spec.initContainers", pod.spec.init_containers),
    ):
        for index, container in enumerate(containers):
            path = f"{group}[{index}].resources"
            fields.append((f"{path}.requests", container.resources.requests))
            fields.append((f"{path}.limits", container.resources.limits))
    fields.append(("spec.overhead", pod.spec.overhead))
    for path, resources in (
        ("spec.resources", pod.spec.resources),
        ("status.resources", pod.status.resources),
    ):
        if resources is not None:
            fields.append((f"{path}.requests", resources.requests))
            fields.append((f"{path}.limits", resources.limits))
    fields.append(("status.allocatedResources", pod.status.allocated_resources or {}))
    for group, statuses in (
        ("status.containerStatuses", pod.status.container_statuses),
        ("status.initContainerStatuses", pod.status.init_container_statuses),
    ):
        for index, status in enumerate(statuses):
            path = f"{group}[{index}]"
            fields.append((f"{path}.allocatedResources", status.allocated_resources or {}))
            if status.resources is not None:
                fields.append((f"{path}.resources.requests", status.resources.requests))
                fields.append((f"{path}.resources.limits", status.resources.limits))
    return fields
