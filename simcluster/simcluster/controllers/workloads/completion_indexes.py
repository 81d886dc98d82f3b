"""The indexes of an Indexed Job, as its status writes them: ``0,2-5``."""

from collections.abc import Iterable

from simcluster.store.store import Stored

INDEX_ANNOTATION = "batch.kubernetes.io/job-completion-index"


def parse_indexes(text: str) -> set[int]:
    """The indexes in a text.

    Examples:
        >>> sorted(parse_indexes("0,2-4"))
        [0, 2, 3, 4]
    """
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


def format_indexes(indexes: Iterable[int]) -> str:
    """A text for indexes.

    Examples:
        >>> format_indexes([4, 0, 3, 2, 7, 8])
        '0,2-4,7,8'
    """
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and runs[-1][-1] == index - 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    return ",".join(_run(run) for run in runs)


def _run(run: list[int]) -> str:
    """Three in a row and more are written as a range, as kube-controller-manager does."""
    return f"{run[0]}-{run[-1]}" if len(run) > 2 else ",".join(map(str, run))


def index_of(pod: Stored) -> int | None:
    """A pod's completion index."""
    text = pod.annotations.get(INDEX_ANNOTATION, "")
    return int(text) if text.isdigit() else None
