"""Replaces the names in calls by keyed hashes (``--anonymise``).

Every text is taken apart into words, and each word is replaced by its hash. What the scheduler
decides and writes stays the same, up to the renaming:

- Equal words have equal hashes, so selectors match and references find their objects.
- Words of the scheduler's own code stay (`own_words`): messages are replaced word by word, and a
  message about hashed names is the message with its names hashed.
- Keys of Kubernetes' own labels, numbers, times, UIDs and names of resources stay.
- Names are hashed part by part between hyphens, because Kubernetes makes names of names
  (``POD-VOLUME``). Values of labels are hashed as a whole, because their length is limited.

A field that is not known here is hashed, so that a new one cannot leak.
"""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

import msgspec
from msgspec.structs import astuple, replace

from stowage.api.events import ConfigurationChanged, CustomObjectSeen
from stowage.api.objects.node import NodeSelectorTerm, Taint
from stowage.api.objects.pod import Toleration
from stowage.api.objects.volume import Volume
from stowage.recording.header import Header
from stowage.recording.own_words import WORD, own_words

_REMEMBERED = 50_000
_PIECE = re.compile(
    r"Insufficient \S+"
    r"|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+(?:Z|[+-][0-9]{2}:[0-9]{2})"
    r"|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"
    r"|(?:[A-Za-z0-9-]+\.)*(?:kubernetes|k8s)\.io/[A-Za-z0-9._-]+"
    rf"|(?P<word>{WORD.pattern})"
)
"""What stays as a whole: the resource of a message, times, UIDs, keys of Kubernetes; then words."""
_NUMBER = re.compile(
    r"[0-9]+(?:\.[0-9]+){0,2}(?:[eE][0-9]+|[A-Za-z]{1,2})?|(?:[0-9]+(?:\.[0-9]+)?(?:[nu]s|ms|[smh]))+"
)
"""A number, a quantity, a version or a duration."""
_INTEGER = re.compile(r"[+-]?[0-9]+")
_CEL = re.compile(r"(\"[^\"]*\"|'[^']*')|[A-Za-z_][A-Za-z0-9_]*")
_HASH_BYTES = 6

Json: TypeAlias = dict[str, Any]


class Anonymiser:
    """Replaces the names of one recording.

    Args:
        key: The key of the hashes; by default a random one, which is not recorded.
    """

    def __init__(self, key: bytes = b"") -> None:
        self._key = key or secrets.token_bytes(16)
        self._words = set(own_words())
        self.text = lru_cache(_REMEMBERED)(self._text)
        self._hash = lru_cache(_REMEMBERED)(self._hash_of)
        self._by_field: Mapping[str, Callable[[Any], Any]] = {
            **dict.fromkeys(_RESOURCES, self._quantities),
            **dict.fromkeys(_PLUGINS, _kept),
            **dict.fromkeys(("labels", "match_labels", "node_selector", "selector"), self._labels),
            "values": lambda values: tuple(map(self.label_value, values)),
            "expression": self._expression,
            "opaque": lambda _opaque: msgspec.Raw(b"null"),
        }

    def header(self, header: Header) -> Header:
        """The header with an anonymous configuration."""
        configuration = self._configuration(header.configuration)
        name = self.text(header.configuration_hash)
        return replace(header, configuration=configuration, configuration_hash=name)

    def struct(self, value: Any) -> Any:
        """An event, an instruction or a part of one with its texts replaced."""
        if isinstance(value, CustomObjectSeen):
            return replace(value, resource=value.resource, object=self._custom(value.object))
        if isinstance(value, ConfigurationChanged):
            configuration = self._configuration(value.configuration)
            return replace(value, hash=self.text(value.hash), configuration=configuration)
        changed = {}
        for field in value.__struct_fields__:
            old = getattr(value, field)
            if old is not None and old != "" and old != ():
                new = self._field(value, field, old)
                if new is not old:
                    changed[field] = new
        return replace(value, **changed) if changed else value

    def label_value(self, text: str) -> str:
        """The value of a label; whole numbers stay, because ``Gt`` and ``Lt`` compare them."""
        if not text or text in self._words or _INTEGER.fullmatch(text):
            return text
        # A zone label of a volume lists several zones with "__" between them.
        return "__".join(self._hash(part) if part else "" for part in text.split("__"))

    def _field(self, owner: Any, field: str, value: Any) -> Any:
        if field == "value" and isinstance(owner, Taint | Toleration):
            return self.label_value(value)
        if field == "name" and isinstance(owner, Volume):
            return self._parts(value)
        if field == "match_fields" and isinstance(owner, NodeSelectorTerm):
            # The only field is metadata.name, so its values are names and not labels.
            return tuple(type(each)(*map(self._any, astuple(each))) for each in value)
        rule = self._by_field.get(field)
        return self._any(value) if rule is None else rule(value)

    def _any(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, msgspec.Struct):
            return self.struct(value)
        if isinstance(value, tuple | list):
            return type(value)(map(self._any, value))
        if isinstance(value, dict):
            return {self._any(name): self._any(each) for name, each in value.items()}
        return value

    def _quantities(self, value: Any) -> Any:
        """Quantities by resource stay; other fields of these names do not hold them."""
        if not isinstance(value, dict):
            return self._any(value)
        return {
            name: each if isinstance(each, str) else self._any(each) for name, each in value.items()
        }

    def _labels(self, value: Any) -> Any:
        if not isinstance(value, dict):
            return self._any(value)
        return {self.text(key): self.label_value(each) for key, each in value.items()}

    def _text(self, text: str) -> str:
        return _PIECE.sub(self._piece, text)

    def _piece(self, match: re.Match[str]) -> str:
        word = match["word"]
        return match[0] if word is None else self._word(word)

    def _word(self, word: str) -> str:
        if word in self._words or _NUMBER.fullmatch(word):
            return word
        return word if self._words.issuperset(word.split(".")) else self._parts(word)

    def _parts(self, name: str) -> str:
        return "-".join(self._hash(part) if part else "" for part in name.split("-"))

    def _hash_of(self, text: str) -> str:
        digest = hashlib.blake2b(text.encode(), digest_size=_HASH_BYTES, key=self._key).digest()
        # It begins with a letter: names may have to, and no hash is a number.
        return "x" + base64.b32encode(digest).decode().rstrip("=").lower()

    def _expression(self, text: str) -> str:
        """A CEL expression: literals are texts, identifiers are words."""
        return _CEL.sub(lambda each: self.text(each[0]) if each[1] else self._word(each[0]), text)

    def _custom(self, obj: Json) -> Json:
        """The metadata alone: what the other fields hold is not known."""
        metadata: Json = obj.get("metadata", {})
        labels = self._labels(metadata.get("labels") or {})
        return {"metadata": {**self._any(metadata), **({"labels": labels} if labels else {})}}

    def _configuration(self, value: Any, field: str = "") -> Any:
        """A configuration; names of plugins and resources stay."""
        if isinstance(value, dict):
            if field in ("matchLabels", "labels"):
                return self._labels(value)
            return {name: self._configuration(each, name) for name, each in value.items()}
        if isinstance(value, tuple | list):
            return [self._configuration(each, field) for each in value]
        if not isinstance(value, str):
            return value
        if field == "name":
            # Plugins name themselves in messages.
            self._words.add(value)
            return value
        return self.label_value(value) if field == "values" else self.text(value)


_RESOURCES = (
    *("allocatable", "allocated_resources", "capacity", "consumed_capacity", "limits"),
    *("overhead", "requests"),
)
_PLUGINS = (
    *("others", "plain_plugins", "plugin", "plugins", "unschedulable_plugins", "weights"),
    *("extended_resource_name", "resource", "resource_name"),
)
"""Fields with names of plugins and of resources."""


def _kept(value: Any) -> Any:
    return value
