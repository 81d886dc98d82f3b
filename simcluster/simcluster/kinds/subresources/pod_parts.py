"""The two parts of a running pod that have subresources of their own.

``ephemeralcontainers`` adds containers for debugging; ``resize`` changes what containers may use.
"""

from simcluster.apiserver.errors import FieldError, forbidden_field
from simcluster.kinds.defaults.pods import qos_class
from simcluster.validation.pods import POD_SPEC
from simcluster.validation.rules import check
from simcluster.values import Json


def ephemeral_containers(spec: Json, before: Json) -> Json:
    """The pod spec ``before`` with the ephemeral containers of ``spec``."""
    kept = {key: value for key, value in before.items() if key != "ephemeralContainers"}
    added = spec.get("ephemeralContainers")
    return {**kept, "ephemeralContainers": added} if added else kept


def resized(spec: Json, before: Json) -> Json:
    """The pod spec ``before`` with the resources that ``spec`` gives its containers."""
    new = dict(before)
    for kind in ("containers", "initContainers"):
        asked = {container.get("name"): container for container in spec.get(kind) or ()}
        if kind in before:
            new[kind] = [
                {**container, "resources": asked[container["name"]].get("resources") or {}}
                if container["name"] in asked
                else container
                for container in before[kind]
            ]
    return new


def validate_part(new: Json, old: Json, subresource: str) -> list[FieldError]:
    """Errors of a pod of which one part was changed."""
    found = list(check(new["spec"], "spec", POD_SPEC))
    if subresource == "resize":
        if qos_class(new["spec"]) != (old.get("status") or {}).get("qosClass"):
            found.append(
                forbidden_field("spec", "Pod QOS Class may not change as a result of resizing")
            )
        return found
    before = old["spec"].get("ephemeralContainers") or []
    after = {found["name"]: found for found in new["spec"].get("ephemeralContainers") or ()}
    for container in before:
        if container["name"] not in after:
            detail = f'existing ephemeral containers "{container["name"]}" may not be removed\n'
            found.append(forbidden_field("spec.ephemeralContainers", detail))
        elif after[container["name"]] != container:
            detail = f'existing ephemeral containers "{container["name"]}" may not be changed\n'
            found.append(forbidden_field("spec.ephemeralContainers", detail))
    return found
