"""A simulated Kubernetes cluster in one process: API server over HTTP, kubelets and controllers.

``stowage demo``, ``stowage cluster``, the integration tests and the benchmarks run on it if there
is no real cluster. All clients, such as kubectl, Kopf and the scheduler, talk to it over a socket,
as they do to a real cluster.

Structure, from the inside out:

- ``store``: revisions of objects, encoded once, with a bounded history of changes, and watches. Its
  ``registry`` is the only way to write: defaults, admission, validation and deletion follow the API
  server's rules. ``loading`` and ``saving`` read and write dumps.
- ``schema``: the types of the API; ``patch``: all kinds of patches and server-side apply.
- ``kinds`` and ``validation``: the served resources and their rules; ``crds``: those that
  CustomResourceDefinitions add.
- ``apiserver``: paths, request bodies, answers and HTTP; ``openapi``, ``printing`` and ``protobuf``
  serve documents, Tables and protobuf bodies; ``auth``: users, tokens, RBAC and reviews.
- ``kubelet``: runs bound pods; ``controllers``: the work of kube-controller-manager.
- ``faults``: injected errors, delays and damaged answers.
- ``cluster``: puts all of it together.

Invariants:

- A stored object is never changed. Its dict tree is decoded from its bytes on demand, and only
  recent trees are kept, so that 100,000 pods take some 250 MiB.
- A write encodes one object, whatever the number of watchers.
- Writes are synchronous: one event loop, no locks, and the revision counter orders all writes.
- Publishing a change costs only the watchers of that resource. A watcher never makes the store
  wait; a watcher that falls behind by ``max_pending_frames`` is closed, as in a real API server.
- Controllers and the kubelet simulation react to changes; none of them polls.

The behaviour follows kube-apiserver v1.36. The tests in ``tests/contract`` and the facts in
``tests/integration`` also run against a real API server.

Not served: protobuf answers (406), and conversion webhooks of custom resources. The objects of
controllers and of the kubelet simulation have no managedFields before their first apply.

Rejected: etcd and kube-apiserver as child processes, because users may not have the binaries; an
in-process fake client, because it would leave the HTTP path untested.
"""

from simcluster.auth.kubeconfig import write_kubeconfig
from simcluster.auth.users import User, parse_token_file, service_account_user
from simcluster.cluster import ClusterOptions, SimulatedCluster, run_cluster
from simcluster.crds.definitions import is_established, resources_of
from simcluster.faults.faults import FaultRule, Faults
from simcluster.kinds.resources import (
    BUILT_IN,
    CUSTOM_RESOURCE_DEFINITIONS,
    POD_GROUP_KINDS,
    PODS,
    Resource,
)
from simcluster.kubelet.kubelet import KubeletOptions
from simcluster.kubelet.node_file import read_node_file
from simcluster.kubelet.nodes import make_node, sample_nodes
from simcluster.store.dump_reader import DumpError, read_dump
from simcluster.store.saving import write_items

__all__ = [
    "BUILT_IN",
    "CUSTOM_RESOURCE_DEFINITIONS",
    "PODS",
    "POD_GROUP_KINDS",
    "ClusterOptions",
    "DumpError",
    "FaultRule",
    "Faults",
    "KubeletOptions",
    "Resource",
    "SimulatedCluster",
    "User",
    "is_established",
    "make_node",
    "parse_token_file",
    "read_dump",
    "read_node_file",
    "resources_of",
    "run_cluster",
    "sample_nodes",
    "service_account_user",
    "write_items",
    "write_kubeconfig",
]
