"""Changes as a watch with selectors shows them."""

from typing import Any

import pytest

from simcluster.apiserver.errors import ApiError
from simcluster.kinds.resources import CONFIG_MAPS, EVENTS, EVENTS_V1, JOBS, NODES, PODS
from simcluster.store.selection import Selection
from simcluster.store.selectors import match_label_selector
from simcluster.store.store import Change, Store, Stored

Json = dict[str, Any]


def pod(node: str = "", **labels: str) -> Json:
    spec = {"nodeName": node} if node else {}
    return {"metadata": {"name": "a", "namespace": "ns", "labels": labels}, "spec": spec}


def seen(selection: Selection, *states: Json | None) -> list[tuple[str, str | None] | None]:
    """How the selection shows each write of ``states``; ``None`` deletes the object."""
    store = Store()
    changes: list[Change] = []
    store.subscribe("pods", changes.append)
    stored: Stored | None = None
    for state in states:
        if state is None and stored is not None:
            store.remove("pods", stored)
        elif state is not None:
            stored = store.put("pods", state)
    views = [selection.view(change) for change in changes]
    return [view and (view[0], view[1].obj["spec"].get("nodeName")) for view in views]


def test_entering_changing_and_leaving_a_field_selector() -> None:
    unbound = Selection(PODS, field_selector="spec.nodeName=")
    assert seen(unbound, pod(), pod(x="y"), pod("n"), None) == [
        ("ADDED", None),
        ("MODIFIED", None),
        ("DELETED", None),
        None,
    ]
    bound = Selection(PODS, field_selector="spec.nodeName!=")
    assert seen(bound, pod(), pod("n"), None) == [None, ("ADDED", "n"), ("DELETED", "n")]


def test_entering_and_leaving_a_label_selector() -> None:
    selection = Selection(PODS, label_selector="app in (web,api),!canary")
    assert seen(selection, pod(app="web"), pod(app="web", canary="")) == [
        ("ADDED", None),
        ("DELETED", None),
    ]


def test_a_deleted_event_has_the_revision_of_the_change() -> None:
    store = Store()
    changes: list[Change] = []
    store.subscribe("pods", changes.append)
    store.put("pods", pod())
    bound = store.put("pods", pod("n"))
    view = Selection(PODS, field_selector="spec.nodeName=").view(changes[1])
    assert view is not None
    assert view[1].obj["metadata"]["resourceVersion"] == str(bound.revision)
    assert view[1].obj["spec"] == {}


def test_a_namespace_selects_only_namespaced_kinds() -> None:
    assert seen(Selection(PODS, namespace="other"), pod()) == [None]
    assert Selection(NODES, namespace="other").namespace is None


@pytest.mark.parametrize("field", ["spec.image", "metadata.labels"])
def test_a_field_that_is_not_indexed_is_refused(field: str) -> None:
    with pytest.raises(ApiError, match=f"field label not supported: {field}"):
        Selection(PODS, field_selector=f"{field}=x")


def test_the_error_for_an_unsupported_field_depends_on_the_kind() -> None:
    known = 'only "metadata.name", "metadata.namespace"'
    with pytest.raises(ApiError, match=f'"spec.x" is not a known field selector: {known}'):
        Selection(CONFIG_MAPS, field_selector="spec.x=1")
    with pytest.raises(ApiError, match=r'field label "spec\.x" not supported'):
        Selection(JOBS, field_selector="spec.x=1")


def test_events_are_selected_by_the_field_names_of_each_version() -> None:
    obj = {"metadata": {"name": "e"}, "involvedObject": {"name": "a"}, "reason": "Scheduled"}
    event = Store().put("events", obj)
    for resource, field in ((EVENTS, "involvedObject.name"), (EVENTS_V1, "regarding.name")):
        assert Selection(resource, field_selector=f"{field}=a,reason=Scheduled").matches(event)
        assert not Selection(resource, field_selector=f"{field}=b").matches(event)
    for resource, field in ((EVENTS, "regarding.name"), (EVENTS_V1, "source")):
        with pytest.raises(ApiError, match=f"field label not supported: {field}"):
            Selection(resource, field_selector=f"{field}=a")


def test_the_source_of_an_event_defaults_to_its_reporter() -> None:
    obj = {"metadata": {"name": "e"}, "source": {}, "reportingComponent": "me"}
    assert Selection(EVENTS, field_selector="source=me").matches(Store().put("events", obj))


def test_a_schedulable_node_counts_as_not_unschedulable() -> None:
    node = Store().put("nodes", {"metadata": {"name": "n"}, "spec": {}})
    assert Selection(NODES, field_selector="spec.unschedulable=false").matches(node)
    assert not Selection(NODES, field_selector="spec.unschedulable=true").matches(node)


def test_a_missing_or_malformed_label_selector_matches_nothing() -> None:
    assert not match_label_selector(None, {})
    assert match_label_selector({}, {"a": "b"})
    faulty = {"matchExpressions": [{"key": "a", "operator": "Like", "values": ["b"]}]}
    assert not match_label_selector(faulty, {"a": "b"})
