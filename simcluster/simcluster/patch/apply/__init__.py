"""Server-side apply: field ownership, and how applied configurations change objects.

- ``field_sets``: sets of field paths, their comparison, and ``fieldsV1``.
- ``recording``: ``metadata.managedFields`` after a create, an update or an apply; results for
  equal writes are cached.
- ``server_side_apply``: merges an applied configuration, removes fields that its manager no longer
  names, and refuses to change fields of other managers.
- ``last_applied``: takes over the fields of client-side ``kubectl apply``.

Follows structured-merge-diff and apimachinery's ``managedfields``. The objects of controllers and
of the kubelet simulation have no managedFields before their first apply; from then on their earlier
fields belong to ``before-first-apply``, as in kube-apiserver.
"""

from simcluster.patch.apply.recording import Recorder, Writer, record_create, record_update
from simcluster.patch.apply.server_side_apply import apply

__all__ = ["Recorder", "Writer", "apply", "record_create", "record_update"]
