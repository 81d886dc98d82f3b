"""Draws mutants at random, each with the same chance."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

import msgspec

from tests.mutation import mutants
from tests.mutation.mutants import Mutant, mutants_of, source_files


def sample(every: Iterable[Mutant], size: int, seed: int) -> list[Mutant]:
    """Draw `size` mutants; a larger sample of the same seed begins with the smaller one.

    Mutants are ordered by a hash of the seed and their key. So a change of one function leaves the
    draw among all others as it was.
    """
    return sorted(every, key=lambda mutant: _place(mutant, seed))[:size]


def _place(mutant: Mutant, seed: int) -> bytes:
    return hashlib.sha256(f"{seed}:{mutant.key}".encode()).digest()


def every_mutant(kept: Path) -> list[Mutant]:
    """The mutants of all files; those of files that did not change are read from `kept`.

    All are made anew after a change of the code that makes them.
    """
    by_text: dict[str, list[Mutant]] = {}
    if kept.exists():
        by_text = msgspec.json.decode(kept.read_bytes(), type=dict[str, list[Mutant]])
    found = {}
    maker = hashlib.sha256(Path(mutants.__file__).read_bytes())
    for file in source_files():
        made_of = maker.copy()
        made_of.update(f"{file}\n{file.read_text(encoding='utf-8')}".encode())
        text = made_of.hexdigest()
        found[text] = by_text[text] if text in by_text else mutants_of(file)
    if found.keys() != by_text.keys():
        kept.write_bytes(msgspec.json.encode(found))
    return [each for of_file in found.values() for each in of_file]
