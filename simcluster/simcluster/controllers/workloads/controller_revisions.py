"""ControllerRevisions: the pod templates of a StatefulSet or DaemonSet over time."""

import copy

from simcluster.controllers.ownership import owner_reference
from simcluster.controllers.shared import Shared
from simcluster.controllers.workloads.template_revision import content_hash, same_template
from simcluster.kinds.resources import CONTROLLER_REVISIONS, Resource
from simcluster.store.deletion import DeleteOptions
from simcluster.store.registry import editable
from simcluster.store.store import Stored
from simcluster.values import Json

REVISION_LABEL = "controller-revision-hash"


class Revisions:
    """The revisions of one kind of workload.

    Args:
        shared: the registry and the indexes.
        owner_kind: StatefulSets or DaemonSets.
    """

    def __init__(self, shared: Shared, owner_kind: Resource) -> None:
        self._shared = shared
        self._owner_kind = owner_kind
        self._owned = shared.owned(CONTROLLER_REVISIONS)

    def of(self, owner: Stored) -> list[Stored]:
        """An owner's revisions, oldest first."""
        return sorted(self._owned.owned_by(owner), key=lambda found: int(found.obj["revision"]))

    def named(self, owner: Stored, name: str) -> Stored | None:
        """One of an owner's revisions by its object's name."""
        return next((found for found in self._owned.owned_by(owner) if found.name == name), None)

    def current(self, owner: Stored) -> Stored:
        """The revision of an owner's present template, made the newest, or created."""
        known = self.of(owner)
        data = template_patch(owner.obj["spec"]["template"])
        newest = int(known[-1].obj["revision"]) if known else 0
        equal = next((found for found in reversed(known) if _equal(found.obj["data"], data)), None)
        if equal is None:
            return self._create(owner, data, newest + 1)
        if equal is known[-1]:
            return equal
        obj = editable(equal)
        obj["revision"] = newest + 1
        return self._shared.registry.replace(CONTROLLER_REVISIONS, equal, obj)

    def _create(self, owner: Stored, data: Json, number: int) -> Stored:
        digest, salt = content_hash(data), 0
        store = self._shared.registry.store
        while store.get(CONTROLLER_REVISIONS.stored_in, owner.namespace, f"{owner.name}-{digest}"):
            salt += 1
            digest = content_hash(data, salt)
        labels = dict(owner.obj["spec"]["template"]["metadata"].get("labels") or {})
        revision: Json = {
            "metadata": {
                "name": f"{owner.name}-{digest}",
                "labels": {**labels, REVISION_LABEL: digest},
                "ownerReferences": [owner_reference(self._owner_kind, owner)],
            },
            "data": data,
            "revision": number,
        }
        annotations = owner.obj["metadata"].get("annotations")
        if annotations:
            revision["metadata"]["annotations"] = dict(annotations)
        return self._shared.registry.create(CONTROLLER_REVISIONS, owner.namespace, revision)

    def forget_oldest(self, owner: Stored, used: set[str]) -> None:
        """Delete unused revisions over ``revisionHistoryLimit``, oldest first."""
        unused = [found for found in self.of(owner) if found.name not in used]
        limit = owner.obj["spec"].get("revisionHistoryLimit", 10)
        for found in unused[: max(0, len(unused) - limit)]:
            self._shared.registry.delete(
                CONTROLLER_REVISIONS, found.namespace, found.name, DeleteOptions()
            )


def template_patch(template: Json) -> Json:
    """The data of a revision: a strategic merge patch that restores the template."""
    return {"spec": {"template": {**copy.deepcopy(template), "$patch": "replace"}}}


def revised_template(revision: Stored) -> Json:
    """The pod template of a revision."""
    template: Json = copy.deepcopy(revision.obj["data"]["spec"]["template"])
    template.pop("$patch", None)
    return template


def revision_hash(revision: Stored, owner: Stored) -> str:
    """The label that pods of a revision carry: the object's name, or its hash for DaemonSets."""
    labels = revision.obj["metadata"].get("labels") or {}
    return str(labels.get(REVISION_LABEL, revision.name.removeprefix(f"{owner.name}-")))


def _equal(one: Json, other: Json) -> bool:
    return same_template(_template(one), _template(other))


def _template(data: Json) -> Json:
    template = (data.get("spec") or {}).get("template") or {}
    return {key: value for key, value in template.items() if key != "$patch"}
