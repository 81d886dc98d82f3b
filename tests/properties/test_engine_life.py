"""Random pod lifecycles: all invariants hold after each step of an engine beside a model cluster.

Watches lag behind each other, answers are lost or late, bindings fail, plugins let pods wait or
work in PreBind, nodes are added and removed, other schedulers bind pods, names are reused, and the
lease is lost and acquired.
"""

from __future__ import annotations

from random import Random

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from stowage.api.events import Event, PreBindFinished, WaitingPodAllowed, WaitingPodRejected
from stowage.api.instructions import Instruction
from stowage.api.objects.pod import PodSpec
from stowage.api.status import Code
from stowage.engine.journal import HandleCall
from tests.support.builders import make_node, make_pod
from tests.support.engines import default_engine
from tests.support.models.cluster_driver import ClusterDriver
from tests.support.models.expected_state import ExpectedState
from tests.support.plugins.reservation_tracker import ReservationTracker

NAMES = [f"p{number}" for number in range(6)]
NODES = ["m", "n", "o"]
CPUS = ["100m", "600m", "1500m"]
PLUGIN = ReservationTracker.name
LABELS = ["", "wait", "work", "wait work", "work", "no"]
SCHEDULERS = ["default-scheduler"] * 4 + ["other-scheduler"]
WATCHES = ["pending assigned", "pending assigned", "pending", "assigned", "assigned", ""]
PRE_BIND_ENDS = [Code.SUCCESS, Code.ERROR, Code.UNSCHEDULABLE]
PAUSES = [0.0, 0.25, 0.5, 1.0, 1.0, 3.0, 12.0]
NUM_STEPS_AT_ONCE = 12
TROUBLES = (
    "small node",
    "big node",
    "node leaves",
    "bound elsewhere",
    "bound elsewhere",
    "bound elsewhere",
    "lost answer",
    "deleted while bound",
    "vanished in a gap",
    "refusal",
    "refusal",
    "lease",
)


def pod_cpu(spec: PodSpec) -> object:
    """The CPU request of a pod, as written."""
    return spec.containers[0].resources.requests["cpu"]


class EngineLife(RuleBasedStateMachine):
    """An engine, a model cluster, the expected state, and an engine that replays the journal."""

    def __init__(self) -> None:
        super().__init__()
        self.generation = 0
        self.tracker = ReservationTracker()
        self.driver = ClusterDriver(
            lambda **options: default_engine(plugins=[self.tracker], **options),
            rng=Random(0),
            checks_capacity=False,
        )
        self.cluster, self.engine = self.driver.cluster, self.driver.engine
        self.expected = ExpectedState("default-scheduler")
        self.twin_choices: list[int] = []
        self.twin = default_engine(
            lambda _ties: self.twin_choices.pop(0), plugins=[ReservationTracker()]
        )
        self.num_followed = 0
        for name in ("m", "n"):
            self.cluster.add_node(make_node(name, cpu="2", pods=4))
        for number, labels in enumerate(("work", "wait", "")):
            uid, label = f"p{number}-0", dict.fromkeys(labels.split(), "")
            self.cluster.create_pod(make_pod(f"p{number}", uid=uid, cpu="600m", labels=label))
        self.deliver(0.0, "pending assigned")
        self.schedule(0.0, 4)

    @rule(seed=st.integers(0, 2**32))
    def many_steps(self, seed: int) -> None:
        """Run a dozen steps in a row: a pod's lifecycle is longer than a usual run."""
        rng = Random(seed)
        for _ in range(NUM_STEPS_AT_ONCE):
            match rng.randrange(8):
                case 0 | 1:
                    self.user_writes_a_pod(*map(rng.choice, (NAMES, CPUS, LABELS, SCHEDULERS)))
                case 2:
                    self.user_deletes_a_pod(rng.choice(NAMES))
                case 3:
                    self.inject_fault(rng.choice(TROUBLES), rng.choice(NODES))
                case 4:
                    self.deliver_answers(rng.choice(PRE_BIND_ENDS), allows=rng.random() < 0.5)
                case 5:
                    self.deliver(rng.choice([*PAUSES, 40.0, 310.0]), rng.choice(WATCHES))
                case _:
                    self.deliver(0.25, rng.choice(WATCHES))
                    self.schedule(rng.choice(PAUSES), rng.randint(1, 4))
            self.check_invariants_now()

    @rule(
        name=st.sampled_from(NAMES),
        cpu=st.sampled_from(CPUS),
        labels=st.sampled_from(LABELS),
        scheduler=st.sampled_from(SCHEDULERS),
    )
    def user_writes_a_pod(self, name: str, cpu: str, labels: str, scheduler: str) -> None:
        uid = self._uid_of(name)
        if uid is None:
            self.generation += 1
            self._write_pod(name, f"{name}-{self.generation}", cpu, labels, scheduler)
        elif not self.cluster.pods[uid].spec.node_name:
            old = self.cluster.pods[uid].spec
            self._write_pod(name, uid, str(pod_cpu(old)), labels, old.scheduler_name)

    def _write_pod(self, name: str, uid: str, cpu: str, labels: str, scheduler: str) -> None:
        named = dict.fromkeys(labels.split(), "")
        pod = make_pod(name, uid=uid, cpu=cpu, labels=named, scheduler_name=scheduler)
        self.cluster.create_pod(pod)

    @rule(name=st.sampled_from(NAMES))
    def user_deletes_a_pod(self, name: str) -> None:
        self.cluster.delete_pod(self._uid_of(name) or "")

    @rule(trouble=st.sampled_from(TROUBLES), node=st.sampled_from(NODES))
    def inject_fault(self, trouble: str, node: str) -> None:
        cluster = self.cluster
        match trouble:
            case "small node" | "big node":
                cluster.add_node(make_node(node, cpu="1" if "small" in trouble else "2", pods=4))
            case "node leaves":
                cluster.remove_node(node)
            case "bound elsewhere" if node in cluster.nodes:
                for pod in cluster.unbound()[-1:]:
                    cluster.bind_elsewhere(pod.metadata.uid, node)
            case "deleted while bound":
                self._delete_while_bound()
            case "vanished in a gap":
                cluster.vanish_in_gap()
            case "lost answer":
                cluster.lost_answers += 1
            case "refusal":
                cluster.refusals += 3
            case "lease":
                cluster.is_leader = not cluster.is_leader

    def _delete_while_bound(self) -> None:
        """Bind a pod with a lost answer, and delete it before the binding is read back."""
        self.generation += 1
        self._write_pod("late", f"late-{self.generation}", "100m", "", "default-scheduler")
        self.cluster.lost_answers += 1
        self.deliver(0.0, "pending assigned")
        self.schedule(0.0, 20)
        self.cluster.delete_while_bound()
        self.deliver(0.0, "assigned")
        self.cluster.release_late_answers()
        self.deliver(0.0, "")

    @rule(code=st.sampled_from(PRE_BIND_ENDS), allows=st.booleans())
    def deliver_answers(self, code: Code, *, allows: bool) -> None:
        """Deliver late answers; end PreBind work and waits at Permit."""
        self.cluster.release_late_answers()
        for uid in list(self.cluster.pre_binds)[:1]:
            run = self.cluster.pre_binds.pop(uid)
            reasons = ("no volume",) if code else ()
            self._handle(PreBindFinished(uid, run.number, code, reasons, PLUGIN))
        for waiting in self.engine.waiting_pods()[:1]:
            uid = waiting.pod.uid
            allowed, rejected = (
                WaitingPodAllowed(uid, PLUGIN),
                WaitingPodRejected(uid, "X", "no"),
            )
            self._handle(allowed if allows else rejected)

    @rule(seconds=st.sampled_from([*PAUSES, 40.0, 310.0]), watches=st.sampled_from(WATCHES))
    def deliver(self, seconds: float, watches: str) -> None:
        self.driver.now += seconds
        self.driver.deliver(watches=watches)
        self._follow()

    @rule(seconds=st.sampled_from(PAUSES), budget=st.integers(1, 4))
    def schedule(self, seconds: float, budget: int) -> None:
        self.driver.now += seconds
        if self.cluster.is_leader:
            self.driver.schedule(budget)
            self._follow()

    # Invariants

    @invariant()
    def the_engine_is_consistent(self) -> None:
        self.engine.validate()

    @invariant()
    def every_waiting_pod_is_in_one_place(self) -> None:
        places = self._places()
        for uid, pod in self.expected.waiting.items():
            if uid not in self.expected.placed and uid not in self.expected.ended:
                found = places.get(uid, [])
                assert len(found) == 1, f"{pod.metadata.name} is in {found}"
        ended = self.expected.ended - self.expected.revived
        back = {uid for uid in ended & places.keys() if places[uid] != ["being bound"]}
        assert not back, f"{back} ended, and wait again"
        strays = {uid: found for uid, found in places.items() if len(found) > 1}
        assert not strays

    @invariant()
    def the_cache_equals_a_count_of_the_objects(self) -> None:
        snapshot = self.engine.state.cache.snapshot()
        cpu = snapshot.resources.names.index("cpu")
        cached = {
            name: (
                bool(snapshot.exists[row]),
                int(snapshot.requested[row, cpu]),
                sorted(pod.uid for pod in snapshot.pods_on(name)),
            )
            for row, name in enumerate(snapshot.node_names)
            if name
        }
        assert cached == self.expected.contents_of_nodes()

    @invariant()
    def plugins_hold_reservations_for_pods_being_bound_only(self) -> None:
        assert self.tracker.reserved == set(self.engine.state.bindings.uids)

    @invariant()
    def events_are_kept_for_pods_that_wait_at_permit_only(self) -> None:
        if not self.engine.waiting_pods():
            assert not any(self.engine.in_flight_event_counts().values())

    @invariant()
    def replaying_the_journal_gives_the_same_state(self) -> None:
        assert self.twin.dump() == self.engine.dump()

    def check_invariants_now(self) -> None:
        """Check all invariants in the middle of a rule."""
        self.the_engine_is_consistent()
        self.every_waiting_pod_is_in_one_place()
        self.the_cache_equals_a_count_of_the_objects()
        self.plugins_hold_reservations_for_pods_being_bound_only()
        self.events_are_kept_for_pods_that_wait_at_permit_only()
        self.replaying_the_journal_gives_the_same_state()

    def teardown(self) -> None:
        """Without faults, every pod is bound in the end or fits on no node."""
        cluster = self.cluster
        self.driver.end_faults()
        cluster.is_leader = True
        for _ in range(40):
            self.driver.now += 21.0
            cluster.release_late_answers()
            for uid in list(cluster.pre_binds):
                run = cluster.pre_binds.pop(uid)
                self._handle(PreBindFinished(uid, run.number, Code.SUCCESS))
            self.deliver(0.0, "pending assigned")
            self.schedule(0.0, 20)
            self.engine.validate()
        self._check_the_end()
        self.replaying_the_journal_gives_the_same_state()

    def _check_the_end(self) -> None:
        waiting = {
            pod.metadata.uid
            for pod in self.cluster.unbound()
            if pod.spec.scheduler_name == "default-scheduler"
        }
        known = self._places()
        assert waiting <= known.keys()
        assert waiting <= self.cluster.conditions.keys()
        self.deliver(0.0, "pending assigned")
        assert self.engine.cache_counts()["assumed_pods"] == self.engine.in_flight()

    def _handle(self, event: Event) -> None:
        self.driver.handle(event)
        self._follow()

    def _follow(self) -> None:
        """Apply the new entries of the journal to the expected state and the replaying engine."""
        journal = self.driver.journal
        entries = journal.entries[self.num_followed :]
        self.num_followed = len(journal)
        for entry in entries:
            answer: list[Instruction]
            if isinstance(entry, HandleCall):
                self.expected.take_events(entry.events)
                answer = self.twin.handle(entry.events, entry.now)
            else:
                self.twin_choices = list(entry.choices)
                answer = self.twin.schedule(entry.now, entry.budget)
            assert answer == list(entry.instructions)
            self.expected.take_instructions(answer, entry.now)

    def _places(self) -> dict[str, list[str]]:
        """UID -> where the engine has the pod: in a queue, on a node, or being bound."""
        state = self.engine.state
        places = {uid: ["being bound"] for uid in state.bindings.uids}
        for queue, pods in state.queue.contents().items():
            for queued in pods:
                if queued.uid not in state.bindings:
                    places.setdefault(queued.uid, []).append(queue.value)
        for pod in state.cache.pods():
            if pod.uid not in state.bindings:
                places.setdefault(pod.uid, []).append("placed")
        return places

    def _uid_of(self, name: str) -> str | None:
        pods = self.cluster.pods.items()
        return next((uid for uid, pod in pods if pod.metadata.name == name), None)


EngineLife.TestCase.settings = settings(
    max_examples=40, stateful_step_count=30, deadline=None, database=None
)
TestEngineLife = EngineLife.TestCase
