from __future__ import annotations

from stowage.queue.heap import KeyedHeap


class _OpenHeap(KeyedHeap[str]):
    """A heap that shows its entries and can be damaged."""

    @property
    def num_entries(self) -> int:
        return len(self._entries)

    def damage(self) -> None:
        self._entries.reverse()
        self._members["d"] = ((4,), 0, 99, "d", "d")


def _heap(*members: tuple[str, int]) -> _OpenHeap:
    heap = _OpenHeap()
    for uid, key in members:
        heap.push(uid, (key,), uid)
    return heap


def _drain(heap: KeyedHeap[str]) -> list[str]:
    popped = []
    while (member := heap.pop()) is not None:
        popped.append(member)
    return popped


def test_members_are_popped_smallest_key_first() -> None:
    assert _drain(_heap(("c", 3), ("a", 1), ("b", 2))) == ["a", "b", "c"]


def test_equal_keys_are_popped_in_order_of_insertion() -> None:
    assert _drain(_heap(("x", 1), ("b", 1), ("m", 1), ("a", 1))) == ["x", "b", "m", "a"]


def test_equal_keys_are_popped_in_order_of_their_turns() -> None:
    heap = _heap()
    for uid, turn in (("x", 3), ("b", 1), ("m", 2), ("a", 2)):
        heap.push(uid, (1,), uid, turn)
    heap.push("b", (1,), "b", 4)
    assert heap.in_order() == ["m", "a", "x", "b"]
    assert _drain(heap) == ["m", "a", "x", "b"]


def test_in_order_lists_the_members_without_removing_them() -> None:
    heap = _heap(("c", 3), ("a", 1), ("b", 1))
    assert heap.in_order() == ["a", "b", "c"]
    assert len(heap) == 3
    assert sorted(heap) == ["a", "b", "c"]


def test_a_removed_member_is_never_popped() -> None:
    heap = _heap(("a", 1), ("b", 2), ("c", 3))
    assert heap.remove("a") == "a"
    assert heap.remove("a") is None
    assert "a" not in heap
    assert heap.peek() == ((2,), "b")
    assert _drain(heap) == ["b", "c"]


def test_pushing_a_known_uid_moves_it_to_its_new_key() -> None:
    heap = _heap(("a", 1), ("b", 2))
    heap.push("a", (3,), "a, changed")
    assert len(heap) == 2
    assert heap.get("a") == "a, changed"
    assert _drain(heap) == ["b", "a, changed"]


def test_pushing_a_known_uid_with_the_same_key_keeps_its_position() -> None:
    heap = _heap(("a", 1), ("b", 1))
    heap.push("a", (1,), "a, changed")
    assert _drain(heap) == ["a, changed", "b"]


def test_an_empty_heap_returns_none() -> None:
    heap = _heap()
    assert heap.peek() is None
    assert heap.pop() is None
    assert heap.get("a") is None


def test_a_member_that_is_pushed_again_after_removal_is_popped_once() -> None:
    heap = _heap(("a", 1), ("b", 2))
    heap.remove("a")
    heap.push("a", (1,), "a")
    assert _drain(heap) == ["a", "b"]


def test_stale_entries_stay_bounded_however_often_members_change() -> None:
    heap = _heap(("a", 0), ("b", 0))
    for turn in range(10_000):
        heap.push("a", (turn,), "a")
        heap.push("x", (turn,), "x")
        heap.remove("x")
    assert list(heap.inconsistencies()) == []
    assert heap.num_entries <= 2 * len(heap) + 64


def test_problems_names_a_member_without_entry_and_a_disorder() -> None:
    heap = _heap(("a", 1), ("b", 2), ("c", 3))
    heap.damage()
    assert list(heap.inconsistencies()) == [
        "entry 1 is smaller than its parent",
        "entry 2 is smaller than its parent",
        "member d has no entry",
    ]


def test_adding_many_members_at_once_equals_adding_them_one_by_one() -> None:
    added = [
        (f"m{number}", ((number * 7) % 10,), f"m{number}", 30 - number) for number in range(30)
    ]
    for known in (0, 3, 500):
        one_by_one = _heap(*((f"k{number}", number % 10) for number in range(known)))
        at_once = _heap(*((f"k{number}", number % 10) for number in range(known)))
        for each in added:
            one_by_one.push(*each)
        at_once.push_all(*map(list, zip(*added, strict=True)))
        assert list(at_once.inconsistencies()) == []
        assert _drain(at_once) == _drain(one_by_one)


def test_adding_many_members_replaces_existing_ones() -> None:
    heap = _heap(("a", 1), ("b", 2))
    heap.push_all(["b", "c"], [(0,), (3,)], ["b", "c"], [0, 0])
    assert list(heap.inconsistencies()) == []
    assert _drain(heap) == ["b", "a", "c"]


def test_members_pushed_after_a_bulk_follow_it_among_equal_keys() -> None:
    heap = _heap(("a", 1))
    heap.push_all(["b", "c"], [(1,), (1,)], ["b", "c"], [0, 0])
    heap.push_all(["d", "e"], [(1,), (1,)], ["d", "e"], [0, 0])
    heap.push("f", (1,), "f")
    assert _drain(heap) == ["a", "b", "c", "d", "e", "f"]
