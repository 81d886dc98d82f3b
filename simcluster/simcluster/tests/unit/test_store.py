"""The store: revisions, a bounded history and subscribers."""

from typing import Any

import msgspec
import pytest

from simcluster.store.store import Backup, Change, HistoryLostError, Store

Json = dict[str, Any]


def thing(name: str, **fields: Any) -> Json:
    return {"metadata": {"name": name, "namespace": "ns"}, **fields}


def names(items: list[Any]) -> list[str]:
    return [stored.name for stored in items]


def test_each_write_gets_the_next_revision_and_is_encoded() -> None:
    store = Store()
    first, second = store.put("things", thing("a")), store.put("other", thing("b"))
    assert second.revision == first.revision + 1
    decoded = msgspec.json.decode(first.body)
    assert decoded["metadata"]["resourceVersion"] == str(first.revision)


def test_a_write_of_equal_content_keeps_the_revision_and_gives_no_event() -> None:
    store = Store()
    first = store.put("things", thing("a", data=1))
    seen: list[Change] = []
    store.subscribe("things", seen.append)
    assert store.put("things", thing("a", data=1)) is first
    assert seen == []


def test_changes_have_the_previous_and_the_current_state() -> None:
    store = Store()
    seen: list[Change] = []
    unsubscribe = store.subscribe("things", seen.append)
    store.put("things", thing("a", data=1))
    changed = store.put("things", thing("a", data=2))
    last = store.remove("things", changed)
    unsubscribe()
    store.put("things", thing("b"))
    assert [change.type for change in seen] == ["ADDED", "MODIFIED", "DELETED"]
    assert seen[1].previous is not None
    assert (seen[1].previous.obj["data"], seen[1].current.obj["data"]) == (1, 2)
    assert last.revision == changed.revision + 1
    assert last.obj["data"] == 2


def test_a_subscriber_gets_changes_of_its_collection_only() -> None:
    store = Store()
    seen: list[Change] = []
    store.subscribe("things", seen.append)
    store.put("other", thing("a"))
    assert seen == []


def test_items_are_sorted_by_key() -> None:
    store = Store()
    for name in "cab":
        store.put("things", thing(name))
    assert names(store.collection("things").items()) == ["a", "b", "c"]
    store.put("things", thing("aa"))
    assert names(store.collection("things").items()) == ["a", "aa", "b", "c"]
    assert store.collection("things").items("elsewhere") == []


def test_an_earlier_revision_can_be_read_back() -> None:
    store = Store()
    a = store.put("things", thing("a", data=1))
    b = store.put("things", thing("b"))
    then = store.revision
    store.put("things", thing("a", data=2))
    store.remove("things", b)
    store.put("things", thing("c"))
    items = list(store.collection("things").range_at(then))
    assert items == [a, b]
    assert names(list(store.collection("things").range_at(store.revision))) == ["a", "c"]


def test_changes_since_a_revision_are_ordered_oldest_first() -> None:
    store = Store()
    start = store.revision
    for name in "abc":
        store.put("things", thing(name))
    changes = store.collection("things").changes_since(start + 1)
    assert [change.current.name for change in changes] == ["b", "c"]
    assert store.collection("things").changes_since(store.revision) == []


def test_a_revision_older_than_the_history_is_refused() -> None:
    store = Store(history_size=2)
    start = store.revision
    for name in "abc":
        store.put("things", thing(name))
    with pytest.raises(HistoryLostError, match=f"too old resource version: {start}"):
        store.collection("things").changes_since(start)
    assert len(store.collection("things").changes_since(start + 1)) == 2


def test_the_history_can_be_cleared() -> None:
    store = Store()
    store.put("things", thing("a"))
    before = store.revision
    store.put("things", thing("b"))
    store.forget_history()
    with pytest.raises(HistoryLostError):
        store.collection("things").changes_since(before)
    assert store.collection("things").changes_since(store.revision) == []


def test_items_are_ordered_by_their_keys_in_etcd() -> None:
    store = Store()
    for namespace in ("a", "a-b", "b"):
        store.put("things", {"metadata": {"name": "x", "namespace": namespace}})
    items = store.collection("things").items()
    assert [stored.namespace for stored in items] == ["a-b", "a", "b"]
    assert len(store.collection("things").items("a")) == 1


def test_a_recreated_object_is_listed_once() -> None:
    store = Store()
    things = store.collection("things")
    first = store.put("things", thing("a"))
    assert names(things.items()) == ["a"]
    store.remove("things", first)
    store.remove("things", store.put("things", thing("b")))
    store.put("things", thing("a"))
    assert names(things.items()) == ["a"]
    assert len(things) == 1


def test_a_range_starts_at_a_key_and_has_a_length() -> None:
    store = Store()
    for name in "abc":
        store.put("things", thing(name))
    then = store.revision
    c = store.get("things", "ns", "c")
    assert c is not None
    store.remove("things", c)
    store.put("things", thing("d"))
    found = store.collection("things").range_at(then, "ns", "ns/b")
    assert (names(list(found)), len(found)) == (["b", "c"], 2)


def test_a_dropped_object_tree_is_decoded_again_from_its_bytes() -> None:
    store = Store()
    stored = store.put("things", thing("a", labels=[1, {"b": None}]))
    before = stored.obj
    stored.drop_tree()
    assert stored.obj == before
    assert stored.obj is stored.obj
    own = stored.copy_of_obj()
    own["labels"].clear()
    assert stored.obj == before


def test_equal_labels_are_stored_once() -> None:
    store = Store()
    first, second = (
        store.put("things", {"metadata": {"name": name, "labels": {"app": "x"}}}) for name in "ab"
    )
    assert first.labels is second.labels


def test_a_loaded_object_keeps_its_revision_and_gives_no_event() -> None:
    store = Store()
    things = store.collection("things")
    seen: list[Change] = []
    store.subscribe("things", seen.append)
    old = thing("a")
    old["metadata"]["resourceVersion"] = "700"
    store.load("things", old)
    store.load("things", thing("b"))
    store.forget_history()
    assert [stored.revision for stored in things.items()] == [700, 701]
    assert (store.revision, seen) == (701, [])
    with pytest.raises(HistoryLostError):
        things.changes_since(700)


def test_malformed_labels_are_ignored() -> None:
    store = Store()
    faulty: list[Any] = [["a"], {"a": ["b"]}, "a", None]
    found: list[Any] = [
        store.put("things", {"metadata": {"name": str(number), "labels": labels}}).labels
        for number, labels in enumerate(faulty)
    ]
    assert found == [{}, {"a": ["b"]}, {}, {}]


def test_a_range_shows_the_state_at_its_creation_despite_later_writes() -> None:
    store = Store()
    for name in ("a", "b", "c"):
        store.put("things", thing(name, data=1))
    things, before = store.collection("things"), store.revision
    found = things.range_at(before)
    store.subscribe("things", found.outlive)
    rest = iter(found)
    seen = [next(rest)]
    store.put("things", thing("b", data=2))
    store.put("things", thing("b", data=3))
    gone = things.get("ns", "c")
    assert gone is not None
    store.remove("things", gone)
    store.put("things", thing("c", data=4))
    store.put("things", thing("d", data=1))
    seen += rest
    assert [(each.name, each.obj["data"]) for each in seen] == [("a", 1), ("b", 1), ("c", 1)]
    assert seen == list(things.range_at(before))


def backed_up() -> tuple[Store, Backup, int]:
    """A store that was changed after its backup; and the revision before the restore."""
    store = Store()
    for name in ("a", "b", "c"):
        store.put("things", thing(name, data=1))
    backup = store.back_up()
    store.put("things", thing("b", data=2))
    store.put("things", thing("d"))
    store.put("others", thing("e"))
    store.remove("things", store.collection("things").items()[0])
    return store, backup, store.revision


def test_a_restore_brings_back_objects_and_revisions() -> None:
    store, backup, _ = backed_up()
    seen: list[tuple[str, str, bool]] = []
    store.subscribe(
        "things", lambda it: seen.append((it.type, it.current.name, store.is_restoring))
    )
    store.restore(backup)
    things = store.collection("things")
    assert names(things.items()) == ["a", "b", "c"]
    assert [each.revision for each in things.items()] == [2, 3, 4]
    assert (store.revision, len(store.collection("others"))) == (4, 0)
    changes = [("DELETED", "b"), ("DELETED", "d"), ("ADDED", "a"), ("ADDED", "b")]
    assert sorted(seen) == sorted((*each, True) for each in changes)
    assert store.put("things", thing("f")).revision == 5
    assert names(list(things.range_at(5))) == ["a", "b", "c", "f"]


def test_watches_from_before_a_restore_are_lost_and_those_of_the_future_are_silent() -> None:
    store, backup, before = backed_up()
    store.restore(backup)
    things = store.collection("things")
    with pytest.raises(HistoryLostError):
        things.changes_since(backup.revision - 1)
    assert things.changes_since(before) == []


def test_a_bumped_restore_outdates_every_watch_and_keeps_the_revisions_of_objects() -> None:
    store, backup, before = backed_up()
    store.restore(backup, bump=1000)
    things = store.collection("things")
    with pytest.raises(HistoryLostError):
        things.changes_since(before)
    assert [each.revision for each in things.items()] == [2, 3, 4]
    assert store.put("things", thing("f")).revision == 1005
