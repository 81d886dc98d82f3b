"""The decisions of one process: where they are kept, and the recorder that fills both places."""

from __future__ import annotations

from collections.abc import Callable

from stowage.operator.decisions.log import DecisionLog
from stowage.operator.decisions.log_files import DecisionLogOptions
from stowage.operator.decisions.recorder import DecisionRecorder
from stowage.operator.decisions.records import DecisionIds
from stowage.operator.decisions.store import DecisionStore


class KeptDecisions:
    """The last decisions in memory and, if there are options, all of them in files.

    Args:
        options: Directory and limits of the files; None writes none.
        unix_nanoseconds: Returns the present time.

    Attributes:
        ids: Makes the ids.
        store: Keeps the last decisions.
        log: Writes the files; None if there are none.
        recorder: Records an attempt in both.
    """

    def __init__(
        self, options: DecisionLogOptions | None, unix_nanoseconds: Callable[[], int]
    ) -> None:
        self.ids = DecisionIds.starting_at(unix_nanoseconds())
        self.store = DecisionStore(self.ids)
        self.log = None if options is None else DecisionLog(options, self.ids)
        kept = [self.store.add] if self.log is None else [self.store.add, self.log.add]
        self.recorder = DecisionRecorder(self.ids, unix_nanoseconds, kept)

    def start(self) -> None:
        """Start to write files."""
        if self.log is not None:
            self.log.start()

    def close(self, grace_s: float) -> None:
        """Write the decisions that wait, for at most `grace_s`, and end."""
        if self.log is not None:
            self.log.close(grace_s)
