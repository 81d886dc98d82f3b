"""Draws mutants at random, each with the same chance."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from tests.mutation.mutants import Mutant


def sample(mutants: Iterable[Mutant], size: int, seed: int) -> list[Mutant]:
    """Draw `size` mutants; a larger sample of the same seed begins with the smaller one.

    Mutants are ordered by a hash of the seed and their key. So a change of one function leaves the
    draw among all others as it was.
    """
    return sorted(mutants, key=lambda mutant: _place(mutant, seed))[:size]


def _place(mutant: Mutant, seed: int) -> bytes:
    return hashlib.sha256(f"{seed}:{mutant.key}".encode()).digest()
