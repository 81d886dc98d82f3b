"""Kopf watches the pending pods and the configuration's ConfigMap in the scheduler's event loop.

Each watch is a Kopf of its own (`KopfRunner`): profiles that come and go restart the watch of pods
only, and the watch of the ConfigMap is limited to one namespace and needs rights there only. Kopf
uses HTTP sessions of our `Connection`. Kopf discovers, lists, watches, resumes and starts again;
the middleware of its session handles the pods of lists and watches and leaves bookmarks for Kopf.

Invariants:

- Kopf writes nothing: no finalizers, no annotations, no peering, no Kubernetes events.
- Kopf ends neither the process nor the scheduler's tasks; it is started again whenever it ends.

`stowage.operator.environment` names the two watches; `stowage.operator.process` runs them.

Rejected: ``kopf.operator()``, which ends by cancelling every task younger than itself, and with it
the scheduler's own; Kopf's handlers for pods: a worker, a second decoding and 0.3 ms for each pod.
"""
