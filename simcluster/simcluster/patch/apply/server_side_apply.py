"""Applies a configuration: merges, prunes, detects conflicts and computes managedFields."""

import copy
from typing import Any, NamedTuple

from simcluster.apiserver.errors import apply_conflict
from simcluster.patch.apply.field_sets import (
    FieldSet,
    Path,
    all_fields,
    applied_fields,
    compare,
    is_granular,
    parts,
    path_text,
)
from simcluster.patch.apply.last_applied import claimed_fields, keep_last_applied
from simcluster.patch.apply.recording import (
    BEFORE_FIRST_APPLY,
    Identity,
    Managers,
    Owned,
    Writer,
    decode_managers,
    encode_managers,
    take,
)
from simcluster.schema import ListType, Struct, Type
from simcluster.store.managed_fields import ManagedFields

Json = dict[str, Any]


class Applied(NamedTuple):
    """The result of an apply: the object and its managedFields."""

    obj: Json
    managed_fields: ManagedFields | None


def apply(
    live: Json | None, config: Json, struct: Struct, writer: Writer, *, force: bool
) -> Applied:
    """Apply a configuration to an object, or create it; the arguments are not changed.

    Raises:
        ApiError: 409, other managers own fields it would change, and ``force`` is not given.
        MissingKeyError: an item of a list has no key to merge it by.
    """
    before = live if live is not None else {}
    managers = _managers_of(before, struct, writer)
    applier = writer.identity("Apply")
    last = managers.pop(applier, None)
    fields = writer.own(applied_fields(config, struct))
    merged: Json = merge(before, config, struct)
    if last is not None and (abandoned := _abandoned(last.fields, fields, managers)):
        merged = copy.deepcopy(merged)  # it shares parts with the live object
        _prune(merged, struct, abandoned)
    plain = {key: value for key, value in before.items() if key not in {"kind", "apiVersion"}}
    changed, removed = compare(plain, _addressed(merged), struct)
    if live is not None:
        claimed = claimed_fields(plain, struct, writer.manager)
        _settle(managers, applier, writer.own(changed), removed, None if force else claimed)
    time = writer.now
    if live is not None and plain == _addressed(merged):
        # An apply that changes nothing keeps its time; that of a new manager is left out.
        time = "" if last is None else last.time
    managers[applier] = Owned(fields, writer.api_version, time)
    keep_last_applied(merged, config, writer.manager)
    return Applied(merged, encode_managers(managers))


def _addressed(obj: Json) -> Json:
    return {key: value for key, value in obj.items() if key not in {"kind", "apiVersion"}}


def _managers_of(live: Json, struct: Struct, writer: Writer) -> Managers:
    entries = (live.get("metadata") or {}).get("managedFields")
    if entries:
        return decode_managers(entries)
    if not live:
        return {}
    identity = Identity(BEFORE_FIRST_APPLY, "Update", writer.api_version, "")
    fields = writer.own(all_fields(live, struct))
    return {identity: Owned(fields, writer.api_version, writer.now)}


def merge(live: Any, config: Any, type_: Type | None) -> Any:
    """The live value overlaid with the configuration."""
    if not (is_granular(type_, live) and is_granular(type_, config)):
        return copy.deepcopy(config)
    if isinstance(type_, ListType):
        before, after = parts(live, type_), parts(config, type_)
        return [
            merge(before[element][0], after[element][0], type_.item)
            if element in before and element in after
            else copy.deepcopy((after.get(element) or before[element])[0])
            for element in _in_order(list(before), list(after))
        ]
    merged = dict(live)
    for element, (inner, inner_type) in parts(config, type_).items():
        key = element[2:]
        merged[key] = merge(live.get(key), inner, inner_type)
    return merged


def _in_order(before: list[str], after: list[str]) -> list[str]:
    """Applied items in the order of the configuration; other items keep their places."""
    wanted = set(after)
    order: list[str] = []
    pending = list(after)
    for element in before:
        if element not in wanted:
            order.append(element)
            continue
        while pending and element in pending:
            order.append(pending.pop(0))
    return order + pending


def _abandoned(last: FieldSet, fields: FieldSet, others: Managers) -> FieldSet:
    """Fields that this manager no longer names and no other manager owns, directly or in part."""
    owned = set(fields)
    for other in others.values():
        owned |= other.fields
    parents = {path[:length] for path in owned for length in range(1, len(path))}
    return last - owned - parents


def _prune(value: Any, type_: Type | None, fields: FieldSet, path: Path = ()) -> None:
    if not fields or not is_granular(type_, value):
        return
    for element, (inner, inner_type) in parts(value, type_).items():
        place = (*path, element)
        below = {each for each in fields if each[: len(place)] == place}
        if not below:
            continue
        if place in below:
            _remove(value, element, inner)
            continue
        _prune(inner, inner_type, below, place)
        if not inner and isinstance(inner, dict | list):
            _remove(value, element, inner)


def _remove(holder: Any, element: str, item: Any) -> None:
    if isinstance(holder, list):
        holder[:] = [
            each for each in holder if each is not item and (element[:2] != "v:" or each != item)
        ]
    else:
        del holder[element[2:]]


def _settle(
    managers: Managers,
    applier: Identity,
    changed: FieldSet,
    removed: FieldSet,
    claimed: FieldSet | None,
) -> None:
    """Refuse changes to fields of other managers, unless claimed; ``None`` claims all of them."""
    found = [
        (identity, path)
        for identity, owned in managers.items()
        for path in (sorted((owned.fields & changed) - claimed) if claimed is not None else ())
    ]
    if found:
        raise _conflict(found)
    take(managers, applier, changed, removed)


def _conflict(found: list[tuple[Identity, Path]]) -> Exception:
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": f"conflict with {_shown(identity)}",
            "field": path_text(path),
        }
        for identity, path in found
    ]
    if len(found) == 1:
        identity, path = found[0]
        why = f"conflict with {_shown(identity)}: {path_text(path)}"
        return apply_conflict(f"Apply failed with 1 conflict: {why}", causes)
    lines: list[str] = []
    for identity in sorted({identity for identity, _ in found}):
        lines.append(f"conflicts with {_shown(identity)}:")
        lines += [f"- {path_text(path)}" for owner, path in found if owner == identity]
    text = "\n".join(lines)
    return apply_conflict(f"Apply failed with {len(found)} conflicts: {text}", causes)


def _shown(identity: Identity) -> str:
    text = f'"{identity.manager}"'
    if identity.subresource:
        text += f' with subresource "{identity.subresource}"'
    return f"{text} using {identity.api_version}" if identity.operation == "Update" else text
