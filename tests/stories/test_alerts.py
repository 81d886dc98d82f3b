"""Every alert fires under its fault and stays silent without one.

The rules of the manifests are evaluated on the /metrics text of real components, which is scraped
once a minute on a simulated clock while a fault lasts.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import yaml

from stowage.api.config.loading import ConfigError, Extender, InvalidConfiguration
from stowage.api.events import (
    BindFailed,
    BindSucceeded,
    NodeSeen,
    PendingPodGone,
    PendingPodSeen,
)
from stowage.api.instructions import AttemptResult, BindPod, Instruction, PodBound, ReportProblem
from stowage.api.reflected_kinds import REFLECTED_KINDS
from stowage.framework import PreFilterResult
from stowage.operator.client.api_client import SentRequest
from stowage.operator.clock import Clock
from stowage.operator.configuration.config_map import ConfigMapReference
from stowage.operator.configuration.live_configuration import (
    ConfigMapOptions,
    LiveConfiguration,
    LoadedConfiguration,
)
from stowage.operator.extenders.client import ExtenderClient, ExtenderError
from stowage.operator.inbox import Inbox
from stowage.operator.leader_election import LeaderElector
from stowage.operator.loop import LoopOptions
from stowage.operator.metrics.configuration_metrics import ConfigurationMetrics
from stowage.operator.metrics.replica_metrics import (
    CertificateMetrics,
    ExtenderMetrics,
    ReflectorMetrics,
    ReplicaMetrics,
)
from stowage.operator.metrics.scheduler_metrics import Metrics
from stowage.operator.serving.serving_certificate import ServingCertificate
from stowage.operator.watch.pending_pods import PendingPods
from stowage.operator.watch.reflector import Reflector
from stowage.state import PodInfo
from tests.support.builders import make_node, make_pod
from tests.support.engines import default_engine, of_type
from tests.support.monitoring.promql import Scrape, evaluate, fires, firing

RULES: dict[str, Mapping[str, Any]] = {
    rule["alert"]: rule
    for group in yaml.safe_load(
        Path("manifests/components/monitoring/prometheus-rule.yaml").read_text(encoding="utf-8")
    )["spec"]["groups"]
    for rule in group["rules"]
}
MINUTE_S = 60.0


class RaisesOnRequest:
    name = "RaisesOnRequest"

    def pre_filter(self, _state: Any, pod: PodInfo, *_args: Any) -> PreFilterResult:
        if "raise_please" in pod.labels:
            raise RuntimeError("as requested")
        return PreFilterResult()


def _load(text: str) -> LoadedConfiguration:
    if text == "wrong":
        raise InvalidConfiguration([ConfigError("field", text, "something else")])
    return LoadedConfiguration(text, {}, {})


class Replica:
    """The engine and the components with metrics, driven minute by minute."""

    def __init__(self) -> None:
        self.now = 0.0
        self.num_pods = 0
        self.scrapes: list[Scrape] = []
        self.engine = default_engine(plugins=[RaisesOnRequest()])
        self.engine.handle([NodeSeen(make_node("n", cpu="1000000", pods=10**6))], self.now)
        self.metrics = Metrics(lambda: self.now)
        self.num_dropped = 0
        self.metrics.attach_engine(self.engine, lambda: self.num_dropped)
        self.leads, self.num_unfinished = True, 0
        elector = SimpleNamespace(may_write=lambda: self.leads, lease_name="stowage")
        self.metrics.registry.register(
            ReplicaMetrics(cast("LeaderElector", elector), lambda: self.num_unfinished, dict)
        )
        nothing = cast("Any", SimpleNamespace(timeouts=SimpleNamespace(max_backoff_s=5)))
        self.reflectors: list[Reflector[Any]] = [
            Reflector(kind, nothing, nothing, Clock(monotonic=lambda: self.now))
            for kind in REFLECTED_KINDS
        ]
        self.pending_pods = PendingPods(Inbox(), ["stowage"], monotonic=lambda: self.now)
        self.has_silent_watches = False
        self.metrics.registry.register(ReflectorMetrics(lambda: self.reflectors, self.pending_pods))
        self.certificate = SimpleNamespace(expires_at=1e9)
        self.metrics.registry.register(
            CertificateMetrics(cast("ServingCertificate", self.certificate))
        )
        self.extender = ExtenderClient(Extender(url_prefix="http://127.0.0.1:1"))
        self.metrics.registry.register(
            ExtenderMetrics(lambda: {self.extender.name: self.extender.num_failures})
        )
        self.live = LiveConfiguration(_load("old"), lambda _event: None, lambda _names: None)
        author = cast("Any", SimpleNamespace(record=lambda *_args, **_more: None))
        self.live.follow(ConfigMapOptions(ConfigMapReference("ns", "name"), _load), author)
        self.metrics.registry.register(ConfigurationMetrics(self.live))

    def scrape(self) -> None:
        """Let a minute pass and record a scrape."""
        self.now += MINUTE_S
        if not self.has_silent_watches:
            self.note_activity()
        self.scrapes.append(Scrape.of(self.now, self.metrics.exposition().decode()))

    def note_activity(self) -> None:
        """Report activity on every watch."""
        watches: list[Reflector[Any] | PendingPods] = [*self.reflectors, self.pending_pods]
        for watch in watches:
            watch.note_activity()

    def pod(self, cpu: str = "1", **labels: str) -> None:
        """Add a pending pod."""
        self.num_pods += 1
        pod = make_pod(f"p{self.num_pods}", cpu=cpu, labels=labels)
        self.engine.handle([PendingPodSeen(pod)], self.now)

    def schedule(self) -> list[Instruction]:
        """Schedule the pending pods."""
        return self._count(self.engine.schedule(self.now, 100))

    def bind(self, *, works: bool = True, takes_s: float = 0.01) -> None:
        """Add and schedule a pod, and report the API server's answer to its binding."""
        self.pod()
        for bind in of_type(BindPod, self.schedule()):
            self.now += takes_s
            self.metrics.observe_bind(bind.pod.uid, "Success" if works else "Error", takes_s)
            self.metrics.observe_request(SentRequest("POST", "201" if works else "422", takes_s))
            uid, node = bind.pod.uid, bind.node_name
            answer = BindSucceeded(uid, node) if works else BindFailed(uid, node, "no")
            self._count(self.engine.handle([answer], self.now))

    def edit(self, text: str) -> None:
        """Report an edit of the ConfigMap."""
        metadata = {"uid": "u", "resourceVersion": str(int(self.now))}
        self.live.handle_event("MODIFIED", {"metadata": metadata, "data": {"config.yaml": text}})

    def fail_watch(self) -> None:
        """Count one more failure of the watch on pods."""
        self.reflectors[1].num_failures += 1

    def drop_event(self) -> None:
        """Count one dropped Event."""
        self.num_dropped += 1

    def _count(self, instructions: list[Instruction]) -> list[Instruction]:
        for each in instructions:
            if isinstance(each, AttemptResult):
                self.metrics.observe_attempt(each)
            elif isinstance(each, PodBound):
                self.metrics.observe_bound(each)
        return instructions


def _unreachable(replica: Replica) -> None:
    for code in ("<error>", "503", "<error>", "200"):
        replica.metrics.observe_request(SentRequest("GET", code, 0.1))


def _plugin_raises(replica: Replica) -> None:
    replica.pod(raise_please="yes")
    replica.schedule()


def _extender_fails(replica: Replica) -> None:
    async def ask() -> None:
        with pytest.raises(ExtenderError):
            await replica.extender.send("filter", b"{}")
        await replica.extender.close()

    asyncio.run(ask())


def _attempt_fails(replica: Replica) -> None:
    replica.pod()
    for attempt in of_type(AttemptResult, replica.engine.schedule(replica.now, 1)):
        failed = AttemptResult(attempt.pod, "error", attempt.scheduler_name, 1, duration_s=0.01)
        replica.metrics.observe_attempt(failed)


def _set(**values: Any) -> Callable[[Replica], None]:
    def change(replica: Replica) -> None:
        vars(replica).update(values)

    return change


def _certificate_ends(replica: Replica) -> None:
    replica.certificate.expires_at = 600_000.0


def _invalid_node(replica: Replica) -> None:
    node = make_node("invalid", cpu="some")
    problems = of_type(ReportProblem, replica.engine.handle([NodeSeen(node)], replica.now))
    assert len(problems) == 1
    replica.metrics.observe_problem()


def _break_watch(replica: Replica) -> None:
    for _ in range(2):
        replica.fail_watch()


def _pod_fits_nowhere(replica: Replica) -> None:
    if not sum(replica.engine.pending_counts().values()):
        replica.pod(cpu="9999999")
    replica.schedule()


#: Alert -> (its fault, applied once a minute; number of minutes).
FAULTS: dict[str, tuple[Callable[[Replica], None], int]] = {
    "StowageWithoutLeader": (_set(leads=False), 5),
    "StowageNotScheduling": (Replica.pod, 12),
    "StowageApiServerUnreachable": (_unreachable, 12),
    "StowageWatchesBreak": (_break_watch, 20),
    "StowageBindingsFail": (lambda replica: replica.bind(works=False), 25),
    "StowageBindingsHeldUp": (_set(num_unfinished=LoopOptions().max_unfinished_bindings), 8),
    "StowageErrors": (_attempt_fails, 25),
    "StowagePluginFails": (_plugin_raises, 25),
    "StowageExtenderFails": (_extender_fails, 25),
    "StowageWatchSilent": (_set(has_silent_watches=True), 9),
    "StowageSlow": (lambda replica: replica.bind(takes_s=2.0), 30),
    "StowageConfigurationRefused": (lambda replica: replica.edit("wrong"), 4),
    "StowagePodsWaitLong": (_pod_fits_nowhere, 70),
    "StowageCertificateExpires": (_certificate_ends, 62),
    "StowageProblems": (_invalid_node, 3),
    "StowageEventsDropped": (Replica.drop_event, 3),
}
#: Other alerts that may fire under the same fault.
ALSO = {"StowageBindingsFail": {"StowageErrors"}, "StowagePluginFails": {"StowageErrors"}}


def _firing(scrapes: list[Scrape]) -> set[str]:
    return {name for name, rule in RULES.items() if fires(rule, scrapes)}


def test_every_alert_has_a_fault() -> None:
    assert set(FAULTS) | {"StowageAbsent"} == set(RULES)


def test_no_alert_fires_while_pods_are_created_and_bound() -> None:
    replica = Replica()
    for _ in range(70):
        replica.bind()
        replica.metrics.observe_request(SentRequest("GET", "200", 0.01))
        replica.edit("new")
        replica.scrape()
        assert _firing(replica.scrapes[-31:]) == set()


@pytest.mark.parametrize("alert", FAULTS)
def test_only_the_alert_of_a_fault_fires_under_it(alert: str) -> None:
    cause, minutes = FAULTS[alert]
    replica = Replica()
    replica.bind()
    replica.scrape()
    for _ in range(minutes):
        cause(replica)
        replica.scrape()
    assert _firing(replica.scrapes) - ALSO.get(alert, set()) == {alert}


@pytest.mark.parametrize("alert", FAULTS)
def test_an_alert_ends_some_time_after_its_fault(alert: str) -> None:
    cause, minutes = FAULTS[alert]
    replica = Replica()
    for _ in range(minutes):
        cause(replica)
        replica.scrape()
    replica.leads, replica.num_unfinished, replica.has_silent_watches = True, 0, False
    replica.certificate.expires_at = 1e9
    replica.edit("new")
    for number in range(1, replica.num_pods + 1):
        replica.engine.handle([PendingPodSeen(make_pod(f"p{number}", cpu="1"))], replica.now)
    for _ in range(20):
        for _ in range(20):
            replica.bind()
        replica.scrape()
    assert _firing(replica.scrapes[-25:]) == set()


def test_no_alert_fires_while_different_pods_wait_for_short_times() -> None:
    replica = Replica()
    waiting: list[str] = []
    for _ in range(90):
        replica.pod(cpu="9999999")
        waiting.append(f"p{replica.num_pods}")
        replica.schedule()
        if len(waiting) > 10:
            name = waiting.pop(0)
            replica.engine.handle([PendingPodGone("default", name, f"uid-{name}")], replica.now)
        replica.bind()
        replica.scrape()
    assert replica.engine.pending_counts()["unschedulable"] > 0
    assert "StowagePodsWaitLong" not in _firing(replica.scrapes)


def test_an_alert_fires_when_a_replica_does_not_answer() -> None:
    replica = Replica()
    replica.scrape()
    silence = [Scrape(replica.now + MINUTE_S * minute, {}) for minute in range(1, 8)]
    assert _firing([*replica.scrapes, *silence]) == {"StowageAbsent"}


def test_an_alert_fires_when_a_leader_has_never_tried_a_pod() -> None:
    """The counter of attempts has no series yet, so it has no increase of 0 either."""
    replica = Replica()
    for _ in range(12):
        replica.pod()
        replica.scrape()
    assert "scheduler_schedule_attempts_total" not in replica.scrapes[-1].samples
    assert fires(RULES["StowageNotScheduling"], replica.scrapes)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("a", {"x": 7.0}),
        ('a{x=~"1|2"} > 7', {}),
        ("sum(increase(a[3m]))", {"": 5.0}),
        ("sum(increase(a[2m]))", {"": 2.0}),
        ("sum(rate(a[2m])) * 60", None),
        ("a - time()", {"x": 7.0 - 120.0}),
        ("increase(a[30s])", {}),
        ("absent(b)", {"": 1.0}),
        ('absent(b{x="1"})', {"": 1.0}),
        ("absent(a)", {}),
        ("sum(a) unless sum(b) > 0", {"": 7.0}),
        ("sum(a unless on (x) b > 0)", {"": 7.0}),
        ("sum(a unless on (job) h_bucket > 0)", {}),
        ("histogram_quantile(0.5, sum by (le) (h_bucket))", {"": 1.5}),
    ],
)
def test_the_evaluator_agrees_with_prometheus(
    expression: str, expected: dict[str, float] | None
) -> None:
    buckets = 'h_bucket{le="1"} 2\nh_bucket{le="2"} 6\nh_bucket{le="+Inf"} 8\n'
    texts = ('a{x="1"} 2\n', 'a{x="1"} 5\n', f'a{{x="1"}} 7\n# TYPE h histogram\n{buckets}')
    scrapes = [Scrape.of(at * MINUTE_S, text) for at, text in enumerate(texts)]
    if expected is None:
        with pytest.raises(NotImplementedError):
            evaluate(expression, scrapes)
        return
    found = evaluate(expression, scrapes)
    assert sorted(found.values()) == sorted(expected.values())


def test_each_series_of_an_alert_is_pending_on_its_own() -> None:
    """Two paths alternate: the expression always holds, but for neither path long enough."""
    rule = {"expr": "sum by (path) (a) > 0", "for": "2m"}
    turns = [Scrape.of(at * MINUTE_S, f'a{{path="{"xy"[at % 2]}"}} 1\n') for at in range(6)]
    assert not fires(rule, turns)
    steady = [Scrape.of(at * MINUTE_S, 'a{path="x"} 1\n') for at in range(6)]
    assert firing(rule, steady) == {frozenset({("path", "x")})}


@pytest.mark.parametrize("alert", RULES)
def test_annotations_use_the_labels_that_the_series_have(alert: str) -> None:
    rule = RULES[alert]
    spoken = set(re.findall(r"\$labels\.(\w+)", str(rule["annotations"])))
    grouped = {
        frozenset(labels.split(", ")) - {"le"}
        for labels in re.findall(r"\bby \(([\w, ]+)\)", rule["expr"])
    }
    expected = frozenset(spoken | {"namespace", "job"})
    assert grouped == ({expected} if alert != "StowageAbsent" else set())


BROKEN = {"namespace": "batch-scheduling", "job": "stowage-batch"}


@pytest.mark.parametrize("alert", FAULTS)
def test_an_alert_names_the_installation_with_the_fault(alert: str) -> None:
    """A second installation has no fault, and has the work that would hide one in a sum."""
    cause, minutes = FAULTS[alert]
    healthy, broken = Replica(), Replica()
    broken.bind()
    scrapes: list[Scrape] = []
    for minute in range(minutes + 1):
        if minute:
            cause(broken)
        for _ in range(20):
            healthy.bind()
        broken.scrape()
        healthy.now = broken.now - MINUTE_S
        healthy.scrape()
        text = broken.metrics.exposition().decode()
        scrapes.append(healthy.scrapes[-1].beside(Scrape.of(broken.now, text, **BROKEN)))
    found = firing(RULES[alert], scrapes)
    assert [dict(series) for series in found if not BROKEN.items() <= dict(series).items()] == []
    assert found
    for other in RULES.keys() - {alert} - ALSO.get(alert, set()):
        assert firing(RULES[other], scrapes[-31:]) == set()


def test_the_silence_of_one_installation_is_not_hidden_by_another() -> None:
    replica = Replica()
    scrapes = []
    for _ in range(8):
        replica.scrape()
        text = replica.metrics.exposition().decode()
        scrapes.append(Scrape.of(replica.now, text, **BROKEN))
    silent = {name: firing(rule, scrapes) for name, rule in RULES.items()}
    expected = frozenset({("namespace", "stowage-system"), ("job", "stowage")})
    assert {name: found for name, found in silent.items() if found} == {"StowageAbsent": {expected}}


def test_a_watch_whose_connections_all_die_is_noticed() -> None:
    """Each next watch is answered, and then silent until it is taken for broken after 90 s."""
    replica = Replica()
    for minute in range(25):
        if minute % 3:
            replica.fail_watch()
        replica.scrape()
    assert _firing(replica.scrapes) == {"StowageWatchesBreak"}


def test_an_outage_that_has_ended_fires_no_alert_about_watches() -> None:
    """Eight failures in 50 s, as the backoff makes them."""
    replica = Replica()
    for _ in range(12):
        replica.scrape()
    for _ in range(8):
        replica.fail_watch()
    for _ in range(15):
        replica.scrape()
        assert _firing(replica.scrapes) == set()


def _standby(now: float, replica: Replica) -> Scrape:
    """Scrape a replica that is no leader, so that its pods stay in the queue."""
    replica.now, replica.leads = now, False
    replica.note_activity()
    text = replica.metrics.exposition().decode()
    return Scrape.of(now, text, instance="standby")


def test_a_standby_with_a_full_queue_fires_no_alert() -> None:
    """On a standby a pod that fits nowhere stays active; the leader seldom tries it."""
    leader, standby = Replica(), Replica()
    standby.pod(cpu="9999999")
    scrapes: list[Scrape] = []
    for minute in range(40):
        if minute == 0:
            leader.pod(cpu="9999999")
            leader.schedule()
        leader.metrics.observe_request(SentRequest("GET", "200", 0.01))
        leader.scrape()
        scrapes.append(leader.scrapes[-1].beside(_standby(leader.now, standby)))
        assert _firing(scrapes[-31:]) == set()
