"""Random runs: users, faults and an engine act on a model cluster, until the run settles."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random

from stowage.api.config.extenders import Extenders
from stowage.api.config.types import Extender
from stowage.api.events import ExtendersAnswered
from stowage.api.instructions import ConsultExtenders
from stowage.engine import Engine
from tests.support.builders import make_node, make_pod
from tests.support.engines import change_to, configurable_engine, default_engine, fit_profile
from tests.support.models.cluster_driver import ClusterDriver

ZONES = ("a", "b", "c")
EXTENDERS = Extenders(
    [Extender(url_prefix="http://x", filter_verb="filter", prioritize_verb="rate", weight=1)],
    max_consultations=2,
)
SPREADING = fit_profile("LeastAllocated")
PACKING = fit_profile("MostAllocated")
ANYWHERE = {
    "schedulerName": "default-scheduler",
    "plugins": {"score": {"disabled": [{"name": "*"}]}},
}
CHANGES = (
    change_to(SPREADING),
    change_to(PACKING, podInitialBackoffSeconds=3, podMaxBackoffSeconds=5),
    change_to(ANYWHERE),
    change_to(PACKING, fit_profile(scheduler_name="batch"), podMaxBackoffSeconds=20),
    change_to({**PACKING, "pluginConfig": [{"name": "Unknown"}]}),
)


class RandomRun(ClusterDriver):
    """Random steps on one cluster; `settle` ends all faults and runs until nothing changes."""

    def __init__(self, seed: int, make: Callable[..., Engine] = default_engine) -> None:
        self.rng = Random(seed)
        super().__init__(make, rng=self.rng)
        self.num_created = 0
        for number in range(self.rng.randint(1, 4)):
            self.add_node(number)

    def add_node(self, number: int) -> None:
        """Add a node, or add a deleted node again."""
        cpu = str(self.rng.randint(1, 4))
        self.cluster.add_node(make_node(f"n{number}", cpu=cpu, pods=5, zone=ZONES[number % 3]))

    def create_pod(self) -> None:
        """Create a pod that may or may not fit."""
        self.num_created += 1
        cpu = f"{self.rng.choice((100, 500, 1500, 5000))}m"
        priority = self.rng.choice((0, 0, 10))
        self.cluster.create_pod(make_pod(f"p{self.num_created}", cpu=cpu, priority=priority))

    def step(self) -> None:
        """Let one user, fault, watch or scheduling cycle act."""
        cluster, rng = self.cluster, self.rng
        self.now += rng.choice((0.0, 0.01, 1.5, 12.0))
        match rng.randrange(11):
            case 0 | 1:
                self.create_pod()
            case 2:
                cluster.delete_pod(rng.choice([*cluster.pods, "uid-unknown"]))
            case 3:
                cluster.lost_answers += 1
            case 4:
                cluster.refusals += 1
            case 5:
                cluster.release_late_answers()
            case 6:
                cluster.failing_evictions += 1
            case 7:
                cluster.end_terminating()
            case 8:
                self.deliver(watches=rng.choice(("pending", "assigned", "pending assigned")))
            case _:
                self.schedule(rng.randint(1, 3))

    def settle(self) -> None:
        """End all faults and run until nothing changes."""
        self.end_faults()
        for _ in range(40):
            self.now += 11.0
            self.cluster.release_late_answers()
            self.cluster.end_terminating()
            self.deliver()
            self.schedule(50)
            self.deliver()


class RunWithExtenders(RandomRun):
    """A run with an extender that answers late, in any order, or with an error."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, partial(default_engine, extenders=EXTENDERS))

    def step(self) -> None:
        super().step()
        questions = self.cluster.questions
        while questions and self.rng.random() < 0.5:
            questions.rotate(self.rng.randrange(len(questions)))
            self.cluster.answers.append(self._answer(questions.popleft()))

    def settle(self) -> None:
        """Let the extender answer every request and accept all nodes, then settle."""
        self.cluster.failing_evictions = 0
        for _ in range(100):
            while self.cluster.questions:
                question = self.cluster.questions.popleft()
                accepted = ExtendersAnswered(
                    question.pod.uid, question.number, passed=question.node_names
                )
                self.cluster.answers.append(accepted)
            self.now += 11.0
            self.cluster.release_late_answers()
            self.cluster.end_terminating()
            self.deliver()
            self.schedule(50)
        super().settle()

    def _answer(self, question: ConsultExtenders) -> ExtendersAnswered:
        uid, number = question.pod.uid, question.number
        if self.rng.random() < 0.1:
            return ExtendersAnswered(uid, number, error="out of order")
        passed = [name for name in question.node_names if self.rng.random() < 0.6]
        failed = {name: "not today" for name in question.node_names if name not in passed}
        scores = {name: self.rng.randrange(100) for name in passed}
        return ExtendersAnswered(uid, number, tuple(passed), failed, scores=scores)


class RunWithReconfiguration(RandomRun):
    """A run in which one step of four changes the configuration, validly or not."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, partial(configurable_engine, SPREADING))

    def step(self) -> None:
        if self.rng.randrange(4):
            super().step()
        else:
            self.handle(self.rng.choice(CHANGES))
