"""A dispatcher whose writers all use a fake API server."""

from __future__ import annotations

import time as real_time

from stowage.api.config.extenders import NO_EXTENDERS
from stowage.engine import Engine
from stowage.operator.decisions.recorder import DecisionRecorder
from stowage.operator.decisions.records import DecisionIds
from stowage.operator.dispatcher import Dispatcher, Writers
from stowage.operator.extenders.dispatcher import ExtenderDispatcher
from stowage.operator.extenders.objects import ExtenderObjects
from stowage.operator.inbox import Inbox
from stowage.operator.metrics.scheduler_metrics import Metrics
from stowage.operator.tracing.attempt_traces import AttemptTraces
from stowage.operator.writers.binder import Binder
from stowage.operator.writers.claim_releaser import ClaimReleaser
from stowage.operator.writers.claim_writer import ClaimWriter
from stowage.operator.writers.event_recorder import EventRecorder
from stowage.operator.writers.evictor import Evictor
from stowage.operator.writers.pod_group_status import PodGroupStatusWriter
from stowage.operator.writers.pod_reader import PodReader
from stowage.operator.writers.pod_status import PodStatusWriter
from stowage.operator.writers.pre_binder import PreBinder
from stowage.operator.writers.volume_writer import VolumeWriter
from tests.support.fake_api import FakeApiClient, FakeTime


def make_dispatcher(
    engine: Engine,
    inbox: Inbox,
    client: FakeApiClient,
    time: FakeTime,
    metrics: Metrics | None = None,
    traces: AttemptTraces | None = None,
) -> Dispatcher:
    """A dispatcher that leads, has no extenders, and gives PreBind plugins a minute."""
    ids = DecisionIds("p")
    binder = Binder(client, lambda: True, time.clock)
    objects = ExtenderObjects(client, time.clock, NO_EXTENDERS)
    writers = Writers(
        pre_binder=PreBinder(engine.pre_bind, 60.0),
        volumes=VolumeWriter(client, lambda: True, time.clock),
        claims=ClaimWriter(client, lambda: True, time.clock, lambda _status: None),
        claim_releaser=ClaimReleaser(client, time.clock),
        binder=binder,
        pod_reader=PodReader(client, time.clock),
        pod_status=PodStatusWriter(client, lambda: True, time.clock),
        pod_group_status=PodGroupStatusWriter(client, lambda: True, time.clock),
        evictor=Evictor(client, time.clock),
        events=EventRecorder(client, "host", time.clock, ids),
        extenders=ExtenderDispatcher(NO_EXTENDERS, inbox, objects, binder, lambda: True),
        decisions=DecisionRecorder(ids, time.clock.unix_nanoseconds, ()),
        configuration_applied=lambda _applied: None,
        configuration_failed=lambda _failed: None,
    )
    return Dispatcher(inbox, writers, metrics or Metrics(real_time.monotonic), traces)
