"""Declarations of Kubernetes' Go types that the models of the client lack.

``go_types.json`` says which fields are pointers, how Go names their types, which lists merge and
which objects are one value to server-side apply. A key is the name of a field or ``Type.field``.

A field that is no pointer has no difference between not set and empty, so the API server leaves an
empty one out when it writes the object.
"""

from importlib.resources import files
from typing import Any

import msgspec


class ListMerge(msgspec.Struct, frozen=True):
    """How one list merges: strategic merge patches and server-side apply differ for some lists.

    Args:
        patch_key: its ``patchMergeKey``; empty where a strategic merge patch replaces the list.
        apply_keys: its ``listMapKeys``; empty for a list that is one value, or a set.
        is_patch_set: strategic merge patches unite it (``patchStrategy=merge`` of scalars).
        is_apply_set: server-side apply owns its items one by one (``listType=set``).
    """

    patch_key: str = ""
    apply_keys: tuple[str, ...] = ()
    is_patch_set: bool = False
    is_apply_set: bool = False


ATOMIC = ListMerge()
"""A list that is one value."""


class _GoTypes(msgspec.Struct):
    """The content of ``go_types.json``.

    Args:
        named_strings: fields whose type is a named string, and its name.
        pointer_strings: fields of type ``*string``; other strings are values.
        value_bools: fields of type ``bool``; others are ``*bool``.
        value_ints: integer fields that are no pointers.
        resource_lists: fields of type ``ResourceList``.
        kept_empty: fields without ``omitempty`` that the client's models do not require.
        always_written: fields of each type that are written even where they are not set.
        lists: how the lists of each type merge; other lists are one value.
        atomic_structs: types that server-side apply owns as a whole.
        atomic_maps: maps that server-side apply owns as a whole.
    """

    named_strings: dict[str, str]
    pointer_strings: frozenset[str]
    value_bools: frozenset[str]
    value_ints: frozenset[str]
    resource_lists: frozenset[str]
    kept_empty: frozenset[str]
    always_written: dict[str, dict[str, Any]]
    lists: dict[str, dict[str, ListMerge]]
    atomic_structs: frozenset[str]
    atomic_maps: frozenset[str]


GO_TYPES = msgspec.json.decode(
    files("simcluster.schema").joinpath("go_types.json").read_bytes(), type=_GoTypes
)


def list_merge(owner: str, field: str) -> ListMerge:
    """How the list in a field of a type merges."""
    return GO_TYPES.lists.get(owner, {}).get(field, ATOMIC)


def go_type(owner: str, field: str, text: str = "string") -> str:
    """The Go type of a field whose type is ``text``, as ``json: cannot unmarshal`` names it."""
    if text.startswith("[]"):
        return "[]" + go_type(owner, "", text[2:])
    if text.startswith("{}"):
        if field in GO_TYPES.resource_lists:
            return "v1.ResourceList"
        return "map[string]" + go_type(owner, "", text[2:])
    if text == "string":
        names = GO_TYPES.named_strings
        named = names.get(f"{owner}.{field}") or names.get(field, "")
        return ("types." if named == "UID" else "v1.") + named if named else "string"
    if text in {"int32", "int64", "bool"}:
        return text
    return {"float": "float64", "any": "interface {}", "bytes": "[]uint8"}.get(text) or (
        "v1." + text.rpartition(".")[2]
    )


def is_pointer(owner: str, field: str, text: str) -> bool:
    """Whether a field may hold something empty."""
    names = {field, f"{owner}.{field}"}
    if names & GO_TYPES.kept_empty:
        return True
    if text == "string":
        return bool(names & GO_TYPES.pointer_strings)
    if text == "bool":
        return field not in GO_TYPES.value_bools
    if text in {"int32", "int64"}:
        return field not in GO_TYPES.value_ints
    return not text.startswith(("[]", "{}"))
