"""A failing event handler is reported with the object's name and stops no other event."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from stowage.api.events import (
    DeviceObjectSeen,
    NodeSeen,
    ObjectInvalid,
    PendingPodSeen,
    StorageSeen,
)
from stowage.api.instructions import EmitEvent, PatchPodStatus, ReportProblem
from stowage.api.objects.meta import ObjectMeta
from stowage.api.status import Status
from stowage.engine import scheduling_cycle
from stowage.engine.binding.steps import status_of_step
from stowage.state.cache import ClusterCache
from tests.support.builders import make_node, make_pod
from tests.support.device_builders import device, make_claim, make_slice, quantities
from tests.support.engines import default_engine, of_type
from tests.support.volume_builders import make_attachment, make_driver


def test_the_report_of_a_failing_event_handler_has_only_the_name_of_the_object() -> None:
    engine = default_engine()
    pod = make_pod("p", labels={"note": "canary"})
    broken = replace(pod, spec=replace(pod.spec, containers=None))
    answer = engine.handle([PendingPodSeen(broken), NodeSeen(make_node("n"))], 0.0)
    (problem,) = of_type(ReportProblem, answer)
    assert problem.subject == "PendingPodSeen"
    assert problem.text == "TypeError(\"'NoneType' object is not iterable\") on default/p"
    assert engine.cache_counts()["nodes"] == 1


def _invalid(kind: str, name: str, **fields: str) -> ObjectInvalid:
    what = ("spec.containers[0].resources.requests[cpu]", "many", "a quantity")
    namespace = fields.pop("namespace", "default")
    return ObjectInvalid(kind, namespace, name, fields.pop("uid", ""), *what, **fields)


INVALID_TEXT = 'spec.containers[0].resources.requests[cpu]: "many" (expected a quantity)'


def test_a_pending_pod_whose_new_version_is_invalid_leaves_the_queue_and_is_told_once() -> None:
    engine = default_engine()
    pod = make_pod("p")
    engine.handle([PendingPodSeen(pod), PendingPodSeen(make_pod("q"))], 0.0)
    invalid = _invalid("Pod", "p", uid=pod.metadata.uid, scheduler_name="default-scheduler")
    answer = engine.handle([invalid], 1.0)
    (problem,) = of_type(ReportProblem, answer)
    assert (problem.subject, problem.text) == ("Pod default/p", INVALID_TEXT)
    (event,) = of_type(EmitEvent, answer)
    assert (event.pod.name, event.event_type, event.reason) == ("p", "Warning", "FailedScheduling")
    assert (event.action, event.note) == ("Scheduling", INVALID_TEXT)
    assert event.scheduler_name == "default-scheduler"
    (patch,) = of_type(PatchPodStatus, answer)
    assert patch.pod.uid == pod.metadata.uid
    assert engine.pending_counts() == {"active": 1, "backoff": 0, "unschedulable": 0, "gated": 0}
    assert of_type(PatchPodStatus, engine.handle([invalid], 2.0)) == []
    engine.validate()


def test_an_invalid_object_that_is_no_pending_pod_of_ours_is_reported_only() -> None:
    engine = default_engine()
    engine.handle([PendingPodSeen(make_pod("p"))], 0.0)
    answer = engine.handle(
        [
            _invalid("Node", "n", namespace="", uid="uid-p"),
            _invalid("Pod", "other", uid="uid-other", scheduler_name="another-scheduler"),
        ],
        1.0,
    )
    assert [each.subject for each in of_type(ReportProblem, answer)] == [
        "Node n",
        "Pod default/other",
    ]
    assert len(answer) == 2
    assert engine.pending_counts()["active"] == 1


def test_a_storage_object_that_names_nothing_is_reported() -> None:
    attachment = make_attachment("a", "", "v")
    unnamed = replace(make_driver(), metadata=ObjectMeta())
    engine = default_engine()
    answer = engine.handle([StorageSeen(attachment), StorageSeen(unnamed)], 0.0)
    assert [(each.subject, each.text) for each in of_type(ReportProblem, answer)] == [
        ("VolumeAttachment a", 'spec.nodeName: "" (expected a name)'),
        ("CSIDriver ", 'metadata.name: "" (expected a name)'),
    ]


def test_a_device_object_without_a_name_or_with_a_bad_quantity_is_reported() -> None:
    engine = default_engine()
    unnamed = replace(make_claim("c"), metadata=ObjectMeta(namespace="team"))
    bad = make_slice("n", [device("gpu-0", capacity=quantities({"memory": "much"}))])
    answer = engine.handle([DeviceObjectSeen(unnamed), DeviceObjectSeen(bad)], 0.0)
    first, second = of_type(ReportProblem, answer)
    assert first.subject == "ResourceClaim team"
    assert first.text == 'metadata.name: "" (expected a name)'
    assert second.subject == "ResourceSlice n-slice"
    assert second.text.startswith('ResourceSlice n-slice: spec: "much" is not valid')


@pytest.mark.parametrize(
    ("owner", "attribute"),
    [
        (ClusterCache, "update_node"),
        (scheduling_cycle, "scheduling_steps"),
    ],
    ids=["event", "scheduling"],
)
def test_without_memory_no_pod_or_event_is_blamed_and_nothing_goes_on(
    owner: Any, attribute: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was changed in part could lead to a wrong binding, so the process must end."""

    def fails(*_arguments: object, **_options: object) -> None:
        raise MemoryError

    engine = default_engine()

    def bind_a_pod() -> None:
        engine.handle([NodeSeen(make_node("n")), PendingPodSeen(make_pod("p"))], 0.0)
        engine.schedule(0.0, 1)

    monkeypatch.setattr(owner, attribute, fails)
    with pytest.raises(MemoryError):
        bind_a_pod()


def test_without_memory_no_step_of_a_binding_cycle_is_blamed() -> None:
    def fails(_state: Any, _cycle: Any) -> Status:
        raise MemoryError

    nothing: Any = None
    with pytest.raises(MemoryError):
        status_of_step(nothing, nothing, fails)
