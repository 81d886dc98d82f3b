"""The subresource ``ephemeralcontainers`` of a pod, which adds containers for debugging."""

from simcluster.apiserver.errors import FieldError, forbidden_field
from simcluster.validation import names, rules
from simcluster.validation.pods import POD_SPEC
from simcluster.values import Json

_SPEC = (
    *POD_SPEC,
    rules.each(
        "ephemeralContainers", rules.need_form("name", names.dns_label), rules.need("image")
    ),
)


def ephemeral_containers(spec: Json, before: Json) -> Json:
    """The pod spec ``before`` with the ephemeral containers of ``spec``."""
    kept = {key: value for key, value in before.items() if key != "ephemeralContainers"}
    added = spec.get("ephemeralContainers")
    return {**kept, "ephemeralContainers": added} if added else kept


def ephemeral_container_errors(new: Json, old: Json) -> list[FieldError]:
    """Errors of a pod after a change of its ephemeral containers."""
    found = list(rules.check(new["spec"], "spec", _SPEC))
    before = old["spec"].get("ephemeralContainers") or []
    added = new["spec"].get("ephemeralContainers") or ()
    after = {container.get("name"): container for container in added}
    for container in before:
        if container["name"] not in after:
            detail = f'existing ephemeral containers "{container["name"]}" may not be removed\n'
            found.append(forbidden_field("spec.ephemeralContainers", detail))
        elif after[container["name"]] != container:
            detail = f'existing ephemeral containers "{container["name"]}" may not be changed\n'
            found.append(forbidden_field("spec.ephemeralContainers", detail))
    return found
