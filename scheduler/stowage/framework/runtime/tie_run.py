"""Breaks ties by the policy of a profile."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np

from stowage.framework.cycle_state import CycleState
from stowage.framework.extension_points import PreScorePlugin, ScorePlugin
from stowage.framework.failure import PluginFailed
from stowage.framework.implements import implements
from stowage.framework.runtime.pre_score_run import run_pre_score_plugins
from stowage.framework.runtime.weighted_plugin import WeightedPlugin
from stowage.framework.tie_policy import BrokenTie, Draw, Narrowing, TiePolicy, UInt64Array
from stowage.framework.verdict import Int64Array
from stowage.state.change_log import ChangeLog
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import Snapshot


class TieRun:
    """Breaks the ties of one profile.

    Args:
        policy: The profile's policy.
    """

    def __init__(self, policy: TiePolicy) -> None:
        self._policy = policy
        self._plugins = tuple(TiePlugin(each) for each in policy.plugins)
        self._keys = NodeKeys(policy.seed)

    def run(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: Int64Array, draw: Draw
    ) -> tuple[int, BrokenTie]:
        """The row to take, and how it was found.

        Args:
            state: The cycle's state after Score; it is not written.
            pod: The pod.
            snapshot: The cluster.
            rows: The tied rows, at least two, ascending.
            draw: The random and the rotating part of the decision.

        Raises:
            PluginFailed: A plugin raised, or a score is not in 0..100.
        """
        num_nodes, narrowings = len(rows), []
        for plugin in self._plugins:
            if len(rows) == 1:
                break
            rows = plugin.best(state, pod, snapshot, rows)
            narrowings.append(Narrowing(plugin.title, len(rows)))
        if len(rows) == 1:
            return int(rows[0]), BrokenTie(num_nodes, tuple(narrowings))
        last_resort = self._policy.type
        tie = BrokenTie(num_nodes, tuple(narrowings), last_resort)
        if last_resort == "FixedOrder":
            return int(rows[self._keys.of(snapshot)[rows].argmin()]), tie
        if last_resort == "RoundRobin":
            return in_turn(rows, snapshot, draw), tie
        return int(rows[draw.choose(len(rows))]), tie


def in_turn(rows: Int64Array, snapshot: Snapshot, draw: Draw) -> int:
    """The row whose turn it is, in search order from where the search began.

    ``selectHost`` of v1.12, which took the node at ``lastNodeIndex`` modulo the number of nodes.
    """
    order = snapshot.search_order
    places = (order.ranks[rows] - draw.start) % len(order.rows)
    return int(rows[places.argsort()[draw.turn % len(rows)]])


class TiePlugin:
    """A Score plugin that is asked about tied nodes only, as if no other node were feasible.

    Attributes:
        title: The plugin's name; with its strategy, if it has a `title` of its own.
    """

    __slots__ = ("_pre_score", "_scorer", "title")

    def __init__(self, plugin: ScorePlugin) -> None:
        self._scorer = WeightedPlugin(plugin, 1)
        self._pre_score = (plugin,) if implements(plugin, PreScorePlugin) else ()
        self.title: str = getattr(plugin, "title", plugin.name)

    def best(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: Int64Array
    ) -> Int64Array:
        """The rows with the plugin's highest score; all if it has nothing to say about the pod.

        Raises:
            PluginFailed: The plugin raised, or a score is not in 0..100.
        """
        own, view = state.fork(), snapshot.view(rows)
        status = run_pre_score_plugins(self._pre_score, own, pod, view)
        if not status.is_success:
            raise PluginFailed(status)
        if self._scorer.name in own.skip_score:
            return rows
        raw = self._scorer.raw(own, pod, view)
        scores = self._scorer.normalized(own, pod, view, raw)
        best: Int64Array = rows[scores == scores.max()]
        return best


class NodeKeys:
    """A number for each node, drawn from a seed and the node's name.

    The order of the nodes by these numbers looks random and never changes, whichever nodes come
    and go. A number is computed when a node came, not in each cycle.

    Args:
        seed: The seed.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._log: ChangeLog | None = None
        self._generation = 0
        self._keys: UInt64Array = np.empty(0, dtype=np.uint64)

    def of(self, snapshot: Snapshot) -> UInt64Array:
        """``uint64[rows]``: meaningful where a node exists."""
        log = snapshot.node_changes
        is_known = log is self._log and len(self._keys) == snapshot.num_rows
        changed = log.since(self._generation) if is_known else None
        if changed is None:
            self._keys = np.zeros(snapshot.num_rows, dtype=np.uint64)
            changed = snapshot.search_order.rows
        for row in changed.tolist():
            self._keys[row] = node_key(self._seed, snapshot.node_names[row])
        self._log, self._generation = log, log.generation
        return self._keys


def node_key(seed: int, name: str) -> int:
    """A number of 64 bits that depends on the seed and the name alone."""
    digest = blake2b(f"{seed}/{name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big")
