"""Semantic versions, as ``github.com/blang/semver/v4`` parses and orders them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from stowage.cel.errors import CelRuntimeError
from stowage.cel.values.numbers import UINT_MAX

_NUMBER = re.compile(r"0|[1-9][0-9]*")
_DIGITS = re.compile(r"[0-9]+")
_IDENTIFIER = re.compile(r"[0-9A-Za-z-]+")


@dataclass(frozen=True, slots=True)
class Semver:
    """A version; `key` orders versions. Build metadata is parsed, but does not count."""

    major: int
    minor: int
    patch: int
    key: tuple[object, ...]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Semver) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


@lru_cache(maxsize=4096)
def parse_semver(text: str) -> Semver:
    """Parse ``1.2.3``, ``1.2.3-rc.1``, ``1.2.3+build``.

    Raises:
        CelRuntimeError: the text is not a semantic version.
    """
    if not text:
        raise CelRuntimeError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise CelRuntimeError("No Major.Minor.Patch elements found")
    rest, plus, build = parts[2].partition("+")
    patch_text, dash, prerelease = rest.partition("-")
    major, minor, patch = (_number(part) for part in (parts[0], parts[1], patch_text))
    identifiers = tuple(_prerelease(part) for part in prerelease.split(".")) if dash else ()
    if plus and not all(_IDENTIFIER.fullmatch(part) for part in build.split(".")):
        raise CelRuntimeError("Build meta data is empty or has invalid characters")
    # A version without prerelease is newer than one with it.
    return Semver(major, minor, patch, (major, minor, patch, not dash, identifiers))


def normalized(text: str) -> str:
    """Remove a leading ``v`` and leading zeros, add missing minor and patch numbers."""
    parts = [_without_zeros(part) for part in text.removeprefix("v").split(".", 2)]
    if len(parts) < 3 and re.search("[+-]", parts[-1]):
        raise CelRuntimeError("short version cannot contain PreRelease/Build meta data")
    return ".".join(parts + ["0"] * (3 - len(parts)))


def _without_zeros(part: str) -> str:
    if len(part) <= 1:
        return part
    stripped = part.lstrip("0")
    return stripped if stripped[:1].isdigit() and stripped[0].isascii() else "0" + stripped


def _number(text: str) -> int:
    if len(text) > 20 or not _NUMBER.fullmatch(text) or int(text) > UINT_MAX:
        raise CelRuntimeError(f"Invalid version number {text[:40]!r}")
    return int(text)


def _prerelease(text: str) -> tuple[bool, int | str]:
    if _DIGITS.fullmatch(text):
        return (False, _number(text))
    if not _IDENTIFIER.fullmatch(text):
        raise CelRuntimeError(f"Invalid prerelease {text[:40]!r}")
    return (True, text)
