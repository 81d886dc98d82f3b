"""Every requeue case with the engine: an event moves exactly the pods that it may help."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from msgspec import convert

from stowage.api.config.loading import KubeSchedulerProfile
from stowage.api.events import (
    AssignedPodGone,
    AssignedPodSeen,
    DeviceObjectGone,
    DeviceObjectSeen,
    Event,
    NamespaceSeen,
    NodeGone,
    NodeSeen,
    PendingPodGone,
    PendingPodSeen,
    StorageGone,
    StorageSeen,
)
from stowage.api.instructions import BindPod
from stowage.api.objects.meta import ApiStruct
from stowage.api.objects.namespace import Namespace
from stowage.api.objects.node import Node
from stowage.api.objects.pod import Pod
from stowage.engine import Engine, make_engine
from stowage.engine.device_event_handlers import RESOURCES as DEVICE_RESOURCES
from stowage.engine.storage_event_handlers import RESOURCES
from stowage.framework import Framework, build_profile
from stowage.plugins import in_tree_registry
from tests.stories.requeue_cases import CASES
from tests.stories.requeue_cases.case import Delete, Put, RequeueCase
from tests.support.engines import DEFAULT_PROFILE, of_type

NO_BACKOFF = {"initial_backoff_s": 0.0, "max_backoff_s": 0.0}


def engine_with(plugins: Iterable[str]) -> Engine:
    """An engine without backoff, with these plugins or with the default ones."""
    profile: dict[str, Any] = dict(DEFAULT_PROFILE)
    if plugins:
        enabled = [{"name": name} for name in ("PrioritySort", "DefaultBinder", *plugins)]
        multi_point = {"enabled": enabled, "disabled": [{"name": "*"}]}
        profile["plugins"] = {"multiPoint": multi_point}
    config = convert(profile, KubeSchedulerProfile)
    framework = Framework(build_profile(config, in_tree_registry()))
    return make_engine([framework], lambda _ties: 0, queue_settings=NO_BACKOFF)


def event_of(update: Put | Delete) -> Event:
    """The event that a watch reports for a change."""
    obj: Any = update.obj
    seen = isinstance(update, Put)
    match obj:
        case Pod():
            return _pod_event(obj, seen=seen)
        case Node():
            return NodeSeen(obj) if seen else NodeGone(obj.metadata.name)
        case Namespace():
            return NamespaceSeen(obj)
        case _ if type(obj) in RESOURCES:
            meta, kind = obj.metadata, type(obj).__name__
            return StorageSeen(obj) if seen else StorageGone(kind, meta.namespace, meta.name)
        case _ if type(obj) in DEVICE_RESOURCES:
            meta, kind = obj.metadata, type(obj).__name__
            gone = DeviceObjectGone(kind, meta.namespace, meta.name)
            return DeviceObjectSeen(obj) if seen else gone
    raise TypeError(f"no watch shows a {type(obj).__name__}")


def _pod_event(pod: Pod, *, seen: bool) -> Event:
    meta = pod.metadata
    identity = (meta.namespace, meta.name, meta.uid)
    if pod.spec.node_name:
        return AssignedPodSeen(pod) if seen else AssignedPodGone(*identity)
    return PendingPodSeen(pod) if seen else PendingPodGone(*identity)


def names_in(engine: Engine, queue_state: str) -> set[str]:
    """The names of the pods in one state of the queue."""
    return {each["pod"].split("/")[1] for each in engine.dump()["queue"][queue_state]}


def prepare(case: RequeueCase) -> Engine:
    """An engine that has rejected all pending pods."""
    engine = engine_with(case.plugins)
    objects: list[ApiStruct] = [*case.objects, *case.pending]
    engine.handle([event_of(Put(each)) for each in objects], 0.0)
    answer = engine.schedule(0.0, len(case.pending))
    assert of_type(BindPod, answer) == []
    waiting = {pod.metadata.name for pod in case.pending}
    assert names_in(engine, "unschedulable") == waiting
    return engine


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_an_event_requeues_exactly_the_pods_it_may_help(case: RequeueCase) -> None:
    engine = prepare(case)
    for update in case.trigger:
        engine.handle([event_of(update)], 1.0)
    pending = {pod.metadata.name for pod in case.pending}
    assert names_in(engine, "active") & pending == case.requeued
    engine.validate()


def test_no_case_is_listed_twice() -> None:
    titles = [(case.plugins, case.name) for case in CASES]
    assert len(titles) == len(set(titles))
    assert len(titles) >= 80
