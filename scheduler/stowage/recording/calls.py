"""Encodes the calls of an engine as MessagePack.

Events and instructions are structs that name their type. Storage and device objects do not, so
their events are recorded with the kind. Annotations that scheduling does not read are replaced by a
digest, in events and in instructions that repeat an object: whether an update changed them is part
of the decision, their text is not.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Sequence
from functools import reduce
from operator import or_
from typing import Any, TypeAlias, get_args

import msgspec
from msgspec.structs import replace

from stowage.api.events import (
    ClaimsWritten,
    CustomObjectSeen,
    DeviceObjectSeen,
    Event,
    StorageSeen,
)
from stowage.api.instructions import BindClaims, Instruction
from stowage.api.objects.device import DeviceObject
from stowage.api.objects.volume import StorageObject
from stowage.api.values.reserved_annotations import RESERVED_PREFIX
from stowage.engine.journal import Entry, HandleCall, ScheduleCall
from stowage.recording.anonymiser import Anonymiser

DIGEST = "stowage/digest-of-annotations"
"""The annotation that stands for those that are not recorded."""

_READ_ANNOTATIONS = (
    "kubernetes.io/config.mirror",
    "pv.kubernetes.io/",
    RESERVED_PREFIX,
    "resource.kubernetes.io/",
    "scheduler.alpha.kubernetes.io/",
    "storage.alpha.kubernetes.io/",
    "volume.beta.kubernetes.io/",
    "volume.kubernetes.io/",
)
"""Prefixes of the annotations that scheduling reads."""


class _ObjectSeen(msgspec.Struct, frozen=True, tag="ObjectSeen"):
    kind: str
    object: msgspec.Raw


_SEEN: dict[str, tuple[Any, type[StorageSeen | DeviceObjectSeen]]] = {
    kind.__name__: (kind, StorageSeen) for kind in get_args(StorageObject)
} | {kind.__name__: (kind, DeviceObjectSeen) for kind in get_args(DeviceObject)}
"""Kind -> its struct and its event."""

_RecordedEvent: TypeAlias = reduce(  # type: ignore[valid-type]  # a union made here
    or_,
    (kind for kind in get_args(Event) if kind not in (StorageSeen, DeviceObjectSeen)),
    _ObjectSeen,
)


class _Handle(msgspec.Struct, frozen=True, array_like=True, tag="handle"):
    now: float
    events: tuple[_RecordedEvent, ...]
    instructions: tuple[Instruction, ...]
    wall_times: tuple[float, ...] = ()


class _Schedule(msgspec.Struct, frozen=True, array_like=True, tag="schedule"):
    now: float
    budget: int
    choices: tuple[int, ...]
    instructions: tuple[Instruction, ...]
    wall_times: tuple[float, ...] = ()
    late_checks: tuple[int, ...] = ()


class _Checkpoint(msgspec.Struct, frozen=True, array_like=True, tag="checkpoint"):
    now: float
    events: tuple[_RecordedEvent, ...]
    is_last: bool = False


class CheckpointPart(msgspec.Struct, frozen=True):
    """Events that show objects which were known when a segment began.

    Attributes:
        is_last: Whether the checkpoint is complete.
    """

    now: float
    events: tuple[Event, ...]
    is_last: bool = False


class End(msgspec.Struct, frozen=True, array_like=True, tag="end"):
    """The last entry of a segment that was not cut; `reason` is why it ends."""

    reason: str


CONTINUED = "continued in the next segment"
"""Why every segment but the last of a recording ends."""

Recorded: TypeAlias = Entry | CheckpointPart | End


class CallEncoder:
    """Encodes calls for one recording.

    Args:
        anonymiser: Replaces names; None records them.
    """

    def __init__(self, anonymiser: Anonymiser | None = None) -> None:
        self._anonymiser = anonymiser
        # The key is not recorded: nobody can try texts against the digests.
        self._key = secrets.token_bytes(16)
        self._encode = msgspec.msgpack.Encoder().encode

    def encode(self, entries: Iterable[Recorded]) -> bytes:
        """The entries as one MessagePack array."""
        return self._encode([self._recorded(entry) for entry in entries])

    def _recorded(self, entry: Recorded) -> _Handle | _Schedule | _Checkpoint | End:
        if isinstance(entry, CheckpointPart):
            shown = tuple(map(self._event, entry.events))
            return _Checkpoint(entry.now, shown, entry.is_last)
        if isinstance(entry, HandleCall):
            events = tuple(map(self._event, entry.events))
            return _Handle(entry.now, events, self._instructions(entry), entry.wall_times)
        if isinstance(entry, ScheduleCall):
            anonymous = replace(entry, instructions=self._instructions(entry))
            return _Schedule(*msgspec.structs.astuple(anonymous))
        return entry

    def _event(self, event: Event) -> Any:
        public = self._public(event)
        if self._anonymiser is not None:
            public = self._anonymiser.struct(public)
        if isinstance(public, StorageSeen | DeviceObjectSeen):
            raw = msgspec.Raw(self._encode(public.object))
            return _ObjectSeen(type(public.object).__name__, raw)
        return public

    def _instructions(self, entry: Entry) -> tuple[Instruction, ...]:
        public = tuple(map(self._public_instruction, entry.instructions))
        if self._anonymiser is None:
            return public
        return tuple(map(self._anonymiser.struct, public))

    def _public_instruction(self, instruction: Instruction) -> Instruction:
        """The instruction without annotations that scheduling does not read."""
        if not isinstance(instruction, BindClaims):
            return instruction
        claims = [
            replace(each, claim=self._without_annotations(each.claim))
            for each in instruction.claims
        ]
        return replace(instruction, claims=tuple(claims))

    def _public(self, event: Event) -> Event:
        """The event without annotations that scheduling does not read."""
        if isinstance(event, CustomObjectSeen):
            return replace(event, object=self._custom(event.object))
        if isinstance(event, ClaimsWritten):
            claims = tuple(map(self._without_annotations, event.claims))
            extended = event.extended and self._without_annotations(event.extended)
            return replace(event, claims=claims, extended=extended)
        for field in event.__struct_fields__:
            obj = getattr(event, field)
            if hasattr(obj, "metadata"):
                return replace(event, **{field: self._without_annotations(obj)})
        return event

    def _without_annotations(self, obj: Any) -> Any:
        annotations = obj.metadata.annotations
        kept = self._kept(annotations)
        if kept == annotations:
            return obj
        return replace(obj, metadata=replace(obj.metadata, annotations=kept))

    def _custom(self, obj: dict[str, Any]) -> dict[str, Any]:
        metadata = obj.get("metadata", {})
        kept = self._kept(metadata.get("annotations") or {})
        return {**obj, "metadata": {**metadata, "annotations": kept}} if kept else obj

    def _kept(self, annotations: dict[str, str]) -> dict[str, str]:
        kept = {
            key: value for key, value in annotations.items() if key.startswith(_READ_ANNOTATIONS)
        }
        if len(kept) == len(annotations):
            return kept
        text = msgspec.msgpack.encode(sorted(annotations.items()))
        kept[DIGEST] = hashlib.blake2b(text, digest_size=8, key=self._key).hexdigest()
        return kept


NOT_CALLS = (msgspec.DecodeError, UnicodeDecodeError)
"""What `decode_calls` raises for bytes that are something else."""

_decode = msgspec.msgpack.Decoder(list[_Handle | _Schedule | _Checkpoint | End]).decode


def decode_calls(data: bytes) -> Sequence[Recorded]:
    """The entries of one MessagePack array.

    Raises:
        NOT_CALLS: The bytes are something else.
    """
    return [_entry(each) for each in _decode(data)]


def _entry(recorded: _Handle | _Schedule | _Checkpoint | End) -> Recorded:
    if isinstance(recorded, _Checkpoint):
        shown = tuple(map(_decoded_event, recorded.events))
        return CheckpointPart(recorded.now, shown, recorded.is_last)
    if isinstance(recorded, _Handle):
        events = tuple(map(_decoded_event, recorded.events))
        return HandleCall(recorded.now, events, recorded.instructions, recorded.wall_times)
    if isinstance(recorded, _Schedule):
        return ScheduleCall(*msgspec.structs.astuple(recorded))
    return recorded


def _decoded_event(event: Any) -> Event:
    if not isinstance(event, _ObjectSeen):
        return event  # type: ignore[no-any-return]  # any event but two kinds
    if event.kind not in _SEEN:
        raise msgspec.ValidationError(f"unknown kind of object: {event.kind}")
    kind, seen = _SEEN[event.kind]
    return seen(msgspec.msgpack.decode(event.object, type=kind))
