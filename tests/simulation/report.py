"""A file that says which seeds have been run, so that a long run can be ended and continued."""

from __future__ import annotations

import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from tests.simulation.plan import MANY_EVENTS, Emphasis

FILES_EVERY = 16
"""One life in so many is recorded, and its decisions are logged: checking files takes time. A life
with files is another one than without: `--files-every` changes the lives, not only the checks."""

#: The kinds of lives, by name.
EMPHASES = {
    "plain": Emphasis(),
    "long": Emphasis(num_events=MANY_EVENTS),
    "devices": Emphasis(has_devices=True),
    "devices-and-volumes": Emphasis(has_devices=True, have_volumes=True),
    "gangs": Emphasis(has_gangs=True),
    "gangs-with-devices": Emphasis(has_devices=True, has_gangs=True),
    "gangs-in-racks": Emphasis(has_gangs=True, are_in_racks=True),
}


class Batch(msgspec.Struct, frozen=True):
    """Some seeds that were run with one emphasis; a line of the file.

    Attributes:
        code: The commit; ends with ``+`` if files were changed since.
        emphasis: One of `EMPHASES`.
        seeds: The seeds.
        failed: Those whose life violated an invariant.
        num_with_files: How many of the lives were recorded, and their decisions logged.
        num_bound: Number of pods bound.
        num_faults: Number of faults and actions.
        cpu_s: The time that the seeds took.
        files_every: The seeds that are multiples of this have files.
    """

    code: str
    emphasis: str
    seeds: tuple[int, ...]
    failed: tuple[int, ...]
    num_with_files: int
    num_bound: int
    num_faults: int
    cpu_s: float
    files_every: int = FILES_EVERY


class Report:
    """Appends batches to a file, and sums them up.

    Args:
        path: The file; made with the first batch.

    Raises:
        msgspec.DecodeError: A line is no batch.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        lines = path.read_bytes().splitlines() if path.exists() else []
        self.batches = [msgspec.json.decode(line, type=Batch) for line in lines]

    def add(self, batch: Batch) -> None:
        """Append a batch."""
        self.batches.append(batch)
        with self._path.open("ab") as file:
            file.write(msgspec.json.encode(batch) + b"\n")

    def seeds_left(
        self, code: str, emphasis: str, seeds: Iterable[int], files_every: int = FILES_EVERY
    ) -> list[int]:
        """The seeds that were not run with this code and emphasis, with files or without."""
        done = {
            seed
            for each in self.batches
            if (each.code, each.emphasis) == (code, emphasis)
            for seed in each.seeds
            if bool(seed % each.files_every) == bool(seed % files_every)
        }
        return [seed for seed in seeds if seed not in done]

    def summary(self) -> Iterator[str]:
        """A line for each code, emphasis and `files_every`, in the order in which they were run."""
        found: defaultdict[tuple[str, str, int], list[Batch]] = defaultdict(list)
        for each in self.batches:
            found[each.code, each.emphasis, each.files_every].append(each)
        for (code, emphasis, files_every), batches in found.items():
            seeds = {seed for each in batches for seed in each.seeds}
            failed = sorted({seed for each in batches for seed in each.failed})
            sums: Counter[str] = Counter()
            for each in batches:
                sums += Counter(bound=each.num_bound, faults=each.num_faults)
                sums += Counter(files=each.num_with_files)
            cpu_s = sum(each.cpu_s for each in batches) / max(1, len(seeds))
            yield (
                f"{code} {emphasis}: {len(seeds)} seeds, {sums['files']} of them recorded "
                f"(every {files_every}), "
                f"{sums['bound']} pods bound, {sums['faults']} faults, {cpu_s:.2f} CPU s a seed, "
                + (f"failed: {' '.join(map(str, failed))}" if failed else "none failed")
            )


def code_version() -> str:
    """The commit of the code that runs, and a ``+`` if files differ from it."""
    root = Path(__file__).parent
    commit = _git(root, "rev-parse", "--short=12", "HEAD")
    return f"{commit}+" if _git(root, "status", "--porcelain", "--untracked-files=no") else commit


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True)
    return done.stdout.strip()
