"""Which class serves an extended resource, and which answers a change of classes voids."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from stowage.api.objects.device import DeviceClass
from stowage.state import ClusterCache
from stowage.state.devices.classes import DeviceClasses
from tests.support.builders import make_node
from tests.support.device_builders import make_class

GPU = "example.com/gpu"


def created(given: DeviceClass, timestamp: str) -> DeviceClass:
    return replace(given, metadata=replace(given.metadata, creation_timestamp=timestamp))


def serving(*classes: DeviceClass) -> str:
    """The class that serves the resource after these classes arrived."""
    cache = ClusterCache()
    for each in classes:
        cache.update_device_object(each)
    found = cache.snapshot().devices.classes.serving(GPU)
    return "" if found is None else found.metadata.name


OLD = created(make_class("old", resource=GPU), "2026-01-01T00:00:00Z")
NEW = created(make_class("new", resource=GPU), "2026-01-02T00:00:00Z")


def test_the_newer_class_serves_a_resource_whatever_the_order() -> None:
    assert serving(OLD, NEW) == "new"
    assert serving(NEW, OLD) == "new"


def test_of_equally_old_classes_the_lower_name_serves() -> None:
    first, second = make_class("a", resource=GPU), make_class("b", resource=GPU)
    assert serving(first, second) == serving(second, first) == "a"


def test_a_class_serves_its_implicit_resource_unless_it_lost_at_its_arrival() -> None:
    cache = ClusterCache()
    for each in (NEW, OLD):
        cache.update_device_object(each)
    classes = cache.snapshot().devices.classes
    assert classes.serving("deviceclass.resource.kubernetes.io/new") is not None
    assert classes.serving("deviceclass.resource.kubernetes.io/old") is None
    cache.remove_device_object(DeviceClass, "new")
    assert classes.serving(GPU) is None


def test_answers_about_nodes_are_void_once_another_or_no_class_serves_a_resource() -> None:
    cache = ClusterCache()
    cache.update_node(make_node("n"))
    snapshot = cache.snapshot()
    logs = (snapshot.node_changes, snapshot.usage_changes, snapshot.devices.slices.changes)
    changes: tuple[Callable[[], object], ...] = (
        lambda: cache.update_device_object(OLD),
        lambda: cache.update_device_object(NEW),
        lambda: cache.remove_device_object(DeviceClass, "new"),
    )
    for change in changes:
        before = [log.generation for log in logs]
        change()
        assert [log.since(each) for log, each in zip(logs, before, strict=True)] == [None] * 3


def _version(given: DeviceClass, version: str) -> DeviceClass:
    return replace(given, metadata=replace(given.metadata, resource_version=version))


def test_only_a_change_of_a_served_resource_or_of_selectors_is_told() -> None:
    told: list[str] = []
    classes = DeviceClasses(lambda: told.append("served"))
    classes.put(_version(OLD, "1"))
    assert len(told) == 1
    classes.put(_version(OLD, "2"))
    assert len(told) == 1
    other = "example.com/other"
    renamed = replace(OLD, spec=replace(OLD.spec, extended_resource_name=other))
    classes.put(_version(renamed, "3"))
    assert len(told) == 2
    assert (classes.serving(GPU), classes.serving(other)) == (None, classes.get("old"))
    classes.put(_version(OLD, "2"))  # older than what is known
    assert (len(told), classes.serving(GPU)) == (2, None)
    classes.drop("old")
    assert len(told) == 3
    assert not classes.serves_any
