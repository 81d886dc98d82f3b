"""Fields of an object as a set of paths, and the ``fieldsV1`` that stores such a set.

A path is a tuple of elements as ``fieldsV1`` writes them: ``f:spec``, ``k:{"name":"c"}``,
``v:"example.com/x"``.
"""

import json
from collections.abc import Set as AbstractSet
from typing import Any

from simcluster.schema import DEDUCED, ListType, MapType, Struct, Type
from simcluster.store.stored import encode

Json = dict[str, Any]
Path = tuple[str, ...]
FieldSet = set[Path]

_KEY_DEFAULTS = {"protocol": "TCP"}
_ALWAYS_THERE = frozenset(
    [
        "f:metadata",
        "f:spec",
        "f:status",
        "f:template",
        "f:strategy",
        "f:updateStrategy",
        "f:containers",
        "f:involvedObject",
        "f:regarding",
        "f:source",
        "f:deprecatedSource",
        "f:roleRef",
        "f:rules",
        "f:loadBalancer",
        "f:names",
    ]
)
"""Fields that a new object of a built-in kind always has, so that no manager owns them."""
_OBJECTS = (Struct, MapType)
NOTHING: tuple[Any, ...] = (None, "", {})
"""Values of fields that a new object is written without."""
SYSTEM_FIELDS = frozenset(
    (
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "generation",
        "managedFields",
        "resourceVersion",
    )
)
"""Fields of the metadata that no manager owns."""
_STRIPPED = frozenset(
    (
        ("f:apiVersion",),
        ("f:kind",),
        ("f:metadata",),
        *(("f:metadata", f"f:{field}") for field in SYSTEM_FIELDS),
    )
)


class MissingKeyError(ValueError):
    """An item of a list that merges by keys lacks them all."""


def without_system_fields(fields: AbstractSet[Path]) -> FieldSet:
    """The fields without those that no manager owns: name, uid and the like."""
    return set(fields - _STRIPPED)


def element_of_item(item: Any, type_: ListType) -> str:
    """The path element of an item of a list that merges by keys, or of a set.

    Raises:
        MissingKeyError: the item lacks every key.
        ValueError: it cannot be identified.
    """
    if not type_.merge.apply_keys:
        return _element_of_set(item)
    if item is None:
        raise ValueError("associative list with keys may not have a null element")
    if not isinstance(item, dict):
        raise ValueError("associative list with keys may not have non-map elements")
    wanted = type_.merge.apply_keys
    values = {key: item.get(key, _KEY_DEFAULTS.get(key)) for key in sorted(wanted)}
    keys = {key: value for key, value in values.items() if value is not None}
    if not keys:
        named = " ".join(map(json.dumps, wanted))
        raise MissingKeyError(
            f"associative list with keys has an element that omits all key fields [{named}] (and "
            "doesn't have default values for any key fields)"
        )
    return "k:" + encode(keys).decode()


def _element_of_set(item: Any) -> str:
    if isinstance(item, dict):
        raise ValueError("associative list without keys has an element that's a map type")
    if isinstance(item, list):
        raise ValueError("not supported: associative list with lists as elements")
    if item is None:
        raise ValueError("associative list without keys has an element that's an explicit null")
    return "v:" + json.dumps(item)


def is_granular(type_: Type | None, value: object) -> bool:
    """Whether a value is owned in parts rather than as a whole."""
    if isinstance(value, dict):
        return type_ == DEDUCED or (isinstance(type_, _OBJECTS) and not type_.is_atomic)
    if isinstance(value, list) and isinstance(type_, ListType):
        return bool(type_.merge.apply_keys or type_.merge.is_apply_set)
    return False


def parts(value: Any, type_: Type | None) -> dict[str, tuple[Any, Type | None]]:
    """The parts of a granular value by their path elements, each with its type."""
    if isinstance(type_, ListType):
        by_element = _by_element(value, type_)
        return {element: (item, type_.item) for element, item in by_element.items()}
    return {f"f:{key}": (inner, part_type(type_, key)) for key, inner in value.items()}


def _by_element(items: list[Any], type_: ListType) -> dict[str, Any]:
    return {element_of_item(item, type_): item for item in items}


def applied_fields(value: Any, type_: Type | None, path: Path = ()) -> FieldSet:
    """The fields that an applied configuration names."""
    if not is_granular(type_, value) or not value:
        return {path} if path else set()
    found: FieldSet = {path} if path and path[-1].startswith("k:") else set()
    for element, (inner, inner_type) in parts(value, type_).items():
        place = (*path, element)
        if element.startswith("f:") and not _is_declared(type_, element[2:]):
            found.add(place)
        found |= applied_fields(inner, inner_type, place)
    return found


def _is_declared(type_: Type | None, key: str) -> bool:
    """Whether a field is named in its type, unlike the keys of maps."""
    return isinstance(type_, Struct) and key in type_.fields


def all_fields(
    value: Any, type_: Type | None, path: Path = (), parent: Type | None = None
) -> FieldSet:
    """Every field of a value, and the value itself unless its parent always has it."""
    is_in = _is_in_list(path)
    is_marked = bool(path) and not _is_always_there(path[-1], parent, is_in)
    found: FieldSet = set()
    _collect(found, value, type_, path, is_marked=is_marked, is_in_list=is_in)
    return found


def _collect(
    found: FieldSet,
    value: Any,
    type_: Type | None,
    path: Path,
    *,
    is_marked: bool,
    is_in_list: bool,
) -> None:
    """Add the fields of a value, and with ``is_marked`` the value itself."""
    if not value or not is_granular(type_, value):
        if path:
            found.add(path)
        return
    if is_marked:
        found.add(path)
    for element, (inner, inner_type) in parts(value, type_).items():
        is_in = is_in_list or element[0] == "k"
        is_part = not _is_always_there(element, type_, is_in)
        _collect(found, inner, inner_type, (*path, element), is_marked=is_part, is_in_list=is_in)


def _is_always_there(element: str, parent: Type | None, is_in_list: bool) -> bool:
    """Whether every new object has this field; those of custom resources have none."""
    if is_in_list or not isinstance(parent, Struct) or not parent.name:
        return False
    return element in _ALWAYS_THERE or element[2:] in parent.always_written


def new_fields(obj: Json, type_: Struct) -> FieldSet:
    """The fields that a new object has and an empty one has not."""
    filled = {key: value for key, value in obj.items() if value not in NOTHING}
    return all_fields(filled, type_)


def _is_in_list(path: Path) -> bool:
    return any(element.startswith("k:") for element in path)


def compare(old: Any, new: Any, type_: Type | None) -> tuple[FieldSet, FieldSet]:
    """Fields that were added or changed from ``old`` to ``new``, and those that were removed."""
    changed: FieldSet = set()
    removed: FieldSet = set()
    if old != new:
        _compare(old, new, type_, (), (changed, removed))
    return changed, removed


def _compare(
    old: Any, new: Any, type_: Type | None, path: Path, found: tuple[FieldSet, FieldSet]
) -> None:
    """Add the differences between two unequal values."""
    changed, removed = found
    if not (is_granular(type_, old) and is_granular(type_, new)):
        changed.add(path)
        return
    prefix = "f:"
    if isinstance(type_, ListType):
        prefix, old, new = "", _by_element(old, type_), _by_element(new, type_)
    for key, inner in new.items():
        if key not in old:
            place = (*path, prefix + key)
            changed |= all_fields(inner, part_type(type_, key), place, type_)
        elif old[key] != inner:
            place = (*path, prefix + key)
            _compare(old[key], inner, part_type(type_, key), place, found)
    for key, inner in old.items():
        if key not in new:
            place = (*path, prefix + key)
            removed |= all_fields(inner, part_type(type_, key), place, type_) | {place}


def part_type(type_: Type | None, key: str) -> Type | None:
    """The type of a field, a value of a map or an item; ``None`` for an unknown field."""
    if isinstance(type_, Struct):
        return type_.fields.get(key, type_.others)
    if isinstance(type_, MapType):
        return type_.value
    if type_ == DEDUCED:
        return DEDUCED
    return type_.item if isinstance(type_, ListType) else None


def to_fields_v1(fields: FieldSet) -> Json:
    """A set as ``fieldsV1``; ``.`` marks an object that is owned itself, besides its parts."""
    root: Json = {}
    for path in sorted(fields):
        node = root
        for element in path:
            node = node.setdefault(element, {})
        node["."] = {}
    _drop_lone_marks(root)
    return root


def _drop_lone_marks(node: Json) -> None:
    if set(node) == {"."}:
        node.clear()
    for inner in node.values():
        _drop_lone_marks(inner)


def from_fields_v1(node: Json, path: Path = ()) -> FieldSet:
    """The set that a ``fieldsV1`` stores."""
    if not node:
        return {path} if path else set()
    found: FieldSet = set()
    for element, inner in node.items():
        found |= {path} if element == "." else from_fields_v1(inner, (*path, element))
    return found


def path_text(path: Path) -> str:
    """A path as conflicts show it: ``.spec.containers[name="c"].image``."""
    text = ""
    for element in path:
        kind, rest = element[:2], element[2:]
        if kind == "f:":
            text += f".{rest}"
        elif kind == "v:":
            text += f"[={rest}]"
        elif kind == "i:":
            text += f"[{rest}]"
        else:
            keys = json.loads(rest)
            text += "[" + ",".join(f"{key}={json.dumps(keys[key])}" for key in sorted(keys)) + "]"
    return text
