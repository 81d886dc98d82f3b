"""The protobuf messages of ``messages.proto``: their fields by number."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import NamedTuple

_MESSAGE = re.compile(r"message (\w+) \{(.*?)\n\}", re.DOTALL)
_FIELD = re.compile(r"(repeated |inline )?(map<string, \w+>|\w+) (\w+) = (\d+);")
_RESERVED = re.compile(r"reserved ([\d, ]+);")


class Field(NamedTuple):
    """One field of a message.

    Args:
        name: JSON name.
        type: a scalar type of protobuf, ``map<string, ...>`` or the name of a message.
        label: ``repeated``, ``inline`` or empty.
    """

    name: str
    type: str
    label: str = ""


RESERVED = Field("", "reserved")
"""A field that is accepted and dropped."""


@cache
def messages() -> Mapping[str, Mapping[int, Field]]:
    """The fields of every known message by their numbers."""
    text = files("simcluster.protobuf").joinpath("messages.proto").read_text(encoding="utf-8")
    return {name: dict(_fields(body)) for name, body in _MESSAGE.findall(text)}


def _fields(body: str) -> Iterator[tuple[int, Field]]:
    for label, type_, name, number in _FIELD.findall(body):
        yield int(number), Field(name, type_, label.strip())
    for numbers in _RESERVED.findall(body):
        for number in numbers.split(","):
            yield int(number), RESERVED
