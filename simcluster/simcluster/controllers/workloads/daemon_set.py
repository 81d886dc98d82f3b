"""DaemonSets: one pod on every eligible node."""

import itertools

from simcluster.controllers.ownership import available_in, is_active, is_finished, is_ready
from simcluster.controllers.reconciler import Key, Reconciler, key_of
from simcluster.controllers.workloads.controller_revisions import (
    REVISION_LABEL,
    Revisions,
    revision_hash,
)
from simcluster.controllers.workloads.daemon_book import DaemonBook, NodeTally
from simcluster.controllers.workloads.daemon_pods import (
    Belonging,
    belonging,
    daemon_pod,
    daemon_spec,
    pinned_node,
)
from simcluster.controllers.workloads.rollout import scaled_value
from simcluster.kinds.resources import DAEMON_SETS, NODES, PODS
from simcluster.store.store import Change, Stored
from simcluster.values import Json
from stowage.api import Node, PodSpec, decode_object
from stowage.api.decoding.decode import convert_object

BATCH = 250
FAILED_POD_BACKOFF_S = 1.0
MAX_BACKOFF_S = 900.0


class DaemonSetController(Reconciler):
    """Keeps one pod of each DaemonSet on every eligible node.

    A change of a node or of a pod marks one node as dirty; a change of a DaemonSet's spec marks all
    of them. Only dirty nodes are reconciled.
    """

    def follow(self) -> None:
        """Follow DaemonSets, their pods, and nodes."""
        self._revisions = Revisions(self.shared, DAEMON_SETS)
        self._books: dict[Key, DaemonBook] = {}
        self._specs: dict[Key, tuple[int, PodSpec]] = {}
        self.shared.pods.on_change(DAEMON_SETS.kind, self._on_pod)
        self.subscribe(NODES, self._on_node)
        self.subscribe(DAEMON_SETS, self._on_set)
        for stored in self.store.collection(DAEMON_SETS.stored_in):
            self._open_book(stored)

    def _open_book(self, stored: Stored) -> None:
        key = Key(stored.namespace, stored.name)
        book = self._books[key] = DaemonBook()
        for pod in self.shared.pods.of(stored).members.values():
            book.put_pod(pinned_node(pod), pod)
        self._mark_all(key, book)

    def _mark_all(self, key: Key, book: DaemonBook) -> None:
        nodes = self.store.collection(NODES.stored_in)
        book.dirty.update(dict.fromkeys(node.name for node in nodes))
        self.enqueue(key)

    def _on_set(self, change: Change) -> None:
        key = key_of(change)
        if change.type == "DELETED":
            self._books.pop(key, None)
            self._specs.pop(key, None)
        elif change.type == "ADDED" or change.previous is None:
            self._open_book(change.current)
        elif change.current.spec != change.previous.spec:
            self._mark_all(key, self._books[key])
        else:
            self.enqueue(key)

    def _on_node(self, change: Change) -> None:
        before, now = change.previous, change.current
        if change.type == "MODIFIED" and before is not None:
            same_spec = before.obj.get("spec") == now.obj.get("spec")
            if same_spec and before.metadata.get("labels") == now.metadata.get("labels"):
                return
        for key, book in self._books.items():
            book.dirty[now.name] = None
            self.enqueue(key)

    def _on_pod(self, change: Change, owner: Json) -> None:
        key = Key(change.current.namespace, owner["name"])
        book = self._books.get(key)
        if book is None:
            return
        before = change.previous
        if before is not None and pinned_node(before) != pinned_node(change.current):
            book.discard_pod(pinned_node(before), before)
        if change.type == "DELETED":
            book.discard_pod(pinned_node(change.current), change.current)
        else:
            book.put_pod(pinned_node(change.current), change.current)
        self.enqueue(key)

    def reconcile(self, key: Key) -> None:
        """Reconcile the dirty nodes, continue an update, then write the status."""
        stored = self.find(DAEMON_SETS, *key)
        book = self._books.get(key)
        if stored is None or book is None or stored.is_terminating:
            return
        revision = self._revisions.current(stored)
        label = revision_hash(revision, stored)
        spec = self._spec(key, stored)
        self._reconcile_dirty(key, stored, book, spec, label)
        if (stored.spec.get("updateStrategy") or {}).get("type") != "OnDelete":
            self._update(stored, book)
        self._report(key, book)
        self._revisions.forget_oldest(stored, {revision.name})

    def _spec(self, key: Key, stored: Stored) -> PodSpec:
        """The pods' typed spec; decoded once per template."""
        generation = stored.metadata.get("generation", 1)
        known = self._specs.get(key)
        if known is None or known[0] != generation:
            template = daemon_spec(stored.spec["template"]["spec"])
            known = self._specs[key] = (generation, convert_object(PodSpec, template))
        return known[1]

    def _reconcile_dirty(
        self, key: Key, stored: Stored, book: DaemonBook, spec: PodSpec, label: str
    ) -> None:
        book.dirty.update(book.waiting)
        book.waiting.clear()
        for node_name in list(itertools.islice(book.dirty, BATCH)):
            node = self.find(NODES, "", node_name)
            if node is None:
                belongs = Belonging(False, False)
            else:
                belongs = belonging(spec, decode_object(Node, node.content))
            self._place(key, stored, book, node_name, belongs, label)
            book.dirty.pop(node_name, None)
            self._count(key, stored, book, node_name, belongs, label)
        if book.dirty:
            self.enqueue(key)

    def _place(
        self,
        key: Key,
        stored: Stored,
        book: DaemonBook,
        node_name: str,
        belongs: Belonging,
        label: str,
    ) -> None:
        """Create or delete pods on one node."""
        living = []
        for pod in list(book.pods.get(node_name, {}).values()):
            if pod.is_terminating:
                continue
            if is_finished(pod):
                if self._may_replace(key, book, node_name):
                    self.delete(PODS, pod)
            elif not belongs.may_stay:
                self.delete(PODS, pod)
            else:
                living.append(pod)
        if belongs.should_run and not book.pods.get(node_name):
            self.registry.create(PODS, stored.namespace, daemon_pod(stored, node_name, label))
        for pod in sorted(living, key=_seniority)[1:]:
            self.delete(PODS, pod)

    def _may_replace(self, key: Key, book: DaemonBook, node_name: str) -> bool:
        """Whether a node's failed pod may be deleted now; the backoff doubles each time."""
        now = self.registry.clock.time_s()
        count, last = book.failures.get(node_name, (0, 0.0))
        wait_s = last + min(FAILED_POD_BACKOFF_S * 2**count, MAX_BACKOFF_S) - now if count else 0.0
        if wait_s > 0:
            book.waiting[node_name] = None
            self.enqueue_after(key, wait_s)
            return False
        book.failures[node_name] = (count + 1, now)
        return True

    def _count(
        self,
        key: Key,
        stored: Stored,
        book: DaemonBook,
        node_name: str,
        belongs: Belonging,
        label: str,
    ) -> None:
        pods = book.pods.get(node_name, {}).values()
        living = [pod for pod in pods if is_active(pod)]
        oldest = min(living, key=_seniority, default=None)
        if oldest is None or not belongs.should_run:
            is_stray = oldest is not None
            tally = NodeTally(desired=int(belongs.should_run), misscheduled=int(is_stray))
            book.set_tally(node_name, tally, is_outdated=False)
            return
        wait_s = self._available_in(key, stored, book, node_name, oldest)
        labels = oldest.labels
        is_updated = labels.get(REVISION_LABEL) == label
        tally = NodeTally(
            desired=1,
            current=1,
            ready=int(is_ready(oldest)),
            available=int(wait_s is not None and wait_s <= 0),
            updated=int(is_updated),
        )
        if tally.available:
            book.failures.pop(node_name, None)
        book.set_tally(node_name, tally, is_outdated=not is_updated)

    def _available_in(
        self, key: Key, stored: Stored, book: DaemonBook, node_name: str, pod: Stored
    ) -> float | None:
        min_ready_s = stored.spec.get("minReadySeconds") or 0
        wait_s = available_in(pod, min_ready_s, self.registry.clock.time_s())
        if wait_s is not None and wait_s > 0:
            book.waiting[node_name] = None
            self.enqueue_after(key, wait_s)
        return wait_s

    def _update(self, stored: Stored, book: DaemonBook) -> None:
        """Delete outdated pods: unready ones, and ready ones up to ``maxUnavailable``."""
        if not book.outdated:
            return
        rolling = stored.spec["updateStrategy"].get("rollingUpdate") or {}
        asked = rolling.get("maxUnavailable", 1)
        allowed = max(1, scaled_value(asked, book.total.desired, round_up=True))
        budget = allowed - (book.total.desired - book.total.available)
        for node_name in list(book.outdated):
            for pod in list(book.pods.get(node_name, {}).values()):
                if pod.is_terminating:
                    continue
                if is_ready(pod):
                    if budget <= 0:
                        continue
                    budget -= 1
                self.delete(PODS, pod)

    def _report(self, key: Key, book: DaemonBook) -> None:
        stored = self.find(DAEMON_SETS, *key)
        if stored is None:
            return
        total = book.total
        status: Json = {
            "currentNumberScheduled": total.current,
            "numberMisscheduled": total.misscheduled,
            "desiredNumberScheduled": total.desired,
            "numberReady": total.ready,
            "observedGeneration": stored.metadata.get("generation", 1),
        }
        counts = {
            "updatedNumberScheduled": total.updated,
            "numberAvailable": total.available,
            "numberUnavailable": total.desired - total.available,
        }
        status |= {name: count for name, count in counts.items() if count}
        self.registry.change_status(DAEMON_SETS, *key, lambda _obj: status)


def _seniority(pod: Stored) -> tuple[bool, str, str]:
    """The order of pods on one node, of which the first stays: bound ones first, then older."""
    metadata = pod.metadata
    return (not pod.spec.get("nodeName"), metadata["creationTimestamp"], metadata["uid"])
