"""The policy of an experiment: what makes its engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from stowage.analysis.simulation.timeline import PolicyChanges
from stowage.api.events import Event
from stowage.engine import Engine


class Policy(Protocol):
    """A configuration of the scheduler under a name."""

    @property
    def name(self) -> str:
        """Its name in results."""
        ...

    def make_engine(
        self,
        scheduler_names: Iterable[str],
        choose: Callable[[int], int],
        post: Callable[[Event], None],
    ) -> Engine:
        """A new engine without nodes and pods.

        Args:
            scheduler_names: Those of the pods; the first profile answers for names that no profile
                has.
            choose: ``choose(n)`` returns an index below n; breaks ties between best nodes.
            post: Receives the events that plugins post.
        """
        ...

    def changes(self, scheduler_names: Iterable[str]) -> Sequence[PolicyChanges]:
        """What the engine becomes during the experiment, in order of time.

        Args:
            scheduler_names: See `make_engine`.
        """
        ...
