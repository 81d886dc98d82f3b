"""Server-side apply: who owns which field of an object, and what follows from it.

- ``field_sets``: fields as paths, read from objects and compared between them; ``fieldsV1``.
- ``managed_fields``: ``metadata.managedFields`` after a create, an update or an apply; what comes
  of writes that are alike in all but their time is told once.
- ``server_side_apply``: merges an applied configuration, removes what its manager no longer names,
  and refuses what others own.
- ``last_applied``: what ``kubectl apply`` has set without the server, and may take over.

Follows structured-merge-diff and apimachinery's ``managedfields``. Events, and what controllers and
the kubelet stand-in make, are tracked from their first apply on; before it their fields belong to
``before-first-apply``, as kube-apiserver calls the manager of an object nobody has tracked.
"""

from simcluster.patch.apply.managed_fields import Recorder, Writer, record_create, record_update
from simcluster.patch.apply.server_side_apply import apply

__all__ = ["Recorder", "Writer", "apply", "record_create", "record_update"]
