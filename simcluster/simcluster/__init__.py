"""The embedded cluster: a Kubernetes API server and kubelet stand-in, over HTTP, in one process.

Purpose. ``stowage demo``, ``stowage cluster``, the integration tests and the benchmarks need a
cluster where there is none. kubectl, Kopf and our own reflectors talk to this one over a socket, as
they would to a real one; nothing in the scheduler knows the difference.

How it is made, from the inside out:

- ``store`` keeps revisions (``stored``: encoded bytes, labels and ``selectable_fields``, and beside
  them the ``owners``, which are the managedFields) and a bounded history of changes.
- ``schema`` knows the types of the API; ``bodies`` and ``patch`` make objects of requests by them.
- ``registry`` is the only way to write: defaults, admission, validation and deletion by the API
  server's rules (``kind_rules``, ``kind_defaults``, ``pod_rules``, ``validation``, ``deletion``).
- ``apply`` keeps ``metadata.managedFields`` and serves server-side apply.
- ``catalog`` knows which resources there are: those of ``resources``, ``plain_resources`` and
  ``control_plane_resources``, and what CustomResourceDefinitions add (``custom_kinds``, with
  rules from their schemas).
- ``endpoints``, ``listing`` and ``watch`` turn requests into registry calls and stored bytes into
  answers (``negotiation``, ``formats``, ``table``, ``presentation``); ``documents`` are discovery
  and OpenAPI, whose schemas are read from the models of the kubernetes client; ``server`` adds
  HTTP, TLS and ``faults``, some of which spoil answers (``disturbance``).
- ``access`` is the gate in front: ``users`` by their ``tokens``, acting as others
  (``impersonation``), and roles (``rbac``) where wanted.
- ``kubelet`` runs bound pods or refuses what a node cannot hold (``node_load``), and behaves as the
  node's annotations say (``node_state``); ``controllers`` do the work of kube-controller-manager.
- ``loading`` starts a cluster from the objects of another one (``dump_reader``), ``saving`` writes
  them to a file; ``node_file`` describes nodes that do not exist anywhere.
- ``embedded`` puts it together.

Invariants.

- A stored object is never changed. Its dict tree is made from its bytes when asked for and is one
  of the few thousand asked for last, so a hundred thousand pods take some 250 MiB. Selectors look
  at labels and fields read out when the object was written, never at the tree.
- Only the object being written is encoded again, whatever the number of watchers.
- Writes are synchronous: one event loop, no locks, and the revision counter is the order of things.
- Publishing a change costs only the watchers of that resource. A watcher never makes the store
  wait; one that falls behind by ``max_pending_frames`` is closed, as a real API server closes it.
- Controllers and the kubelet react to changes; none of them polls.

Behaviour follows what was observed on kube-apiserver v1.36, and its sources. The tests of it
(``tests/integration/test_api_facts.py``, ``test_api_write_facts.py`` and the folder ``contract``)
are written to run against a real API server too.

Where it knows less: events, and what controllers and the kubelet write, have no managedFields until
somebody applies them.

Not served: protobuf answers (406), CEL rules and conversion webhooks of custom resources.

Rejected: etcd and kube-apiserver as child processes (binaries a user may not have, though the tests
run against them where they are at hand), and an in-process fake client (it would leave the HTTP
path, where most surprises live, untested).

Callers: ``stowage.cli`` and tests. This room knows nothing of scheduling.
"""

from simcluster.auth.kubeconfig import write_kubeconfig
from simcluster.auth.users import User, parse_token_file, service_account_user
from simcluster.cluster import ClusterOptions, SimulatedCluster, run_cluster
from simcluster.crds.definitions import is_established, resources_of
from simcluster.faults.faults import FaultRule, Faults
from simcluster.kinds.catalog import BUILT_IN
from simcluster.kinds.resources import CUSTOM_RESOURCE_DEFINITIONS, PODS, Resource
from simcluster.kubelet.kubelet import KubeletOptions
from simcluster.kubelet.node_file import read_node_file
from simcluster.kubelet.nodes import benchmark_nodes, make_node, sample_nodes
from simcluster.store.dump_reader import DumpError, read_dump
from simcluster.store.saving import write_items

__all__ = [
    "BUILT_IN",
    "CUSTOM_RESOURCE_DEFINITIONS",
    "PODS",
    "ClusterOptions",
    "DumpError",
    "FaultRule",
    "Faults",
    "KubeletOptions",
    "Resource",
    "SimulatedCluster",
    "User",
    "benchmark_nodes",
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
