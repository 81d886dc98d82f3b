"""Draws mutants at random, each with the same chance."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

import msgspec

from tests.mutation.mutants import Mutant, mutants_of, source_files


def sample(mutants: Iterable[Mutant], size: int, seed: int) -> list[Mutant]:
    """Draw `size` mutants; a larger sample of the same seed begins with the smaller one.

    Mutants are ordered by a hash of the seed and their key. So a change of one function leaves the
    draw among all others as it was.
    """
    return sorted(mutants, key=lambda mutant: _place(mutant, seed))[:size]


def _place(mutant: Mutant, seed: int) -> bytes:
    return hashlib.sha256(f"{seed}:{mutant.key}".encode()).digest()


def every_mutant(kept: Path) -> list[Mutant]:
    """The mutants of all files; those of files that did not change are read from `kept`."""
    by_text: dict[str, list[Mutant]] = {}
    if kept.exists():
        by_text = msgspec.json.decode(kept.read_bytes(), type=dict[str, list[Mutant]])
    found = {}
    for file in source_files():
        text = hashlib.sha256(f"{file}\n{file.read_text(encoding='utf-8')}".encode()).hexdigest()
        found[text] = by_text[text] if text in by_text else mutants_of(file)
    if found.keys() != by_text.keys():
        kept.write_bytes(msgspec.json.encode(found))
    return [mutant for mutants in found.values() for mutant in mutants]
