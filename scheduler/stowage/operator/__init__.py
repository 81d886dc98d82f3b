"""The shell: the only place with asyncio, Kopf, HTTP, logs, metrics, clock and randomness.

    Kopf (pending pods) ----+                                      +-> PreBinder, Binder   POST
                            +-> Inbox -> SchedulingLoop/Engine -> Dispatcher -> PodStatusWriter
    Reflectors (the rest) --+     ^                                +-> EventRecorder    PATCH, POST
                                  +---- BindSucceeded, BindFailed -+

Invariants:

- The engine is called from one place, `SchedulingLoop.turn`, never from two tasks and never
  across an ``await``.
- Everything that arrives goes through the inbox; everything that leaves, through the dispatcher.
- Nothing is scheduled before the engine has handled all first lists, nor without the lease, nor
  from a view older than the lease: a new leader lists nodes and assigned pods anew (`view`). Each
  write asks ``may_write`` once more, at the last moment (`gated_client`).
- Nobody reads what is served but health without the API server's leave (`delegated_access`).
- Unknown is not failed: a binding whose answer was lost is read back until its fate is known.
- Bindings wait for nothing but bindings: every other kind of request has its own lane.
- An extender that is slow holds up the pods that need it and no others: the engine goes on while
  `ExtenderDispatcher` asks, and hears of the outcome by an event. Extenders see objects as the API server
  wrote them (`ExtenderObjects`); nothing is kept for them unless one is configured.
- Typed client models never touch a hot path: bytes to msgspec structs, bytes from dicts.

The configuration has a way of its own (`live_configuration`): a second Kopf, limited to the
namespace and name of the ConfigMap, brings each edit; what is valid goes through the inbox like
everything else, so the engine changes between two cycles. It runs beside the Kopf for pods, so
that profiles that come and go restart only the latter.

Who may call it: `stowage.cli`, and tests. The rest of the package does not know it exists.

Rejected: ``kopf.operator()`` (ends by cancelling every task younger than itself); Kopf for
everything (23 KiB and 0.3 ms per object); a task per request (22 µs against 2 µs of a lane);
prometheus_client's own histograms on the hot path (4.7 µs per observation against 0.4 µs).
"""

from stowage.operator.app import run, run_blocking
from stowage.operator.configuration.config_map import (
    ConfigMapReference,
    parse_reference,
    read_config_map,
)
from stowage.operator.configuration.live_configuration import ConfigMapOptions, LoadedConfiguration
from stowage.operator.leader_election import LeaderElectionOptions
from stowage.operator.logging.setup import configure_logging
from stowage.operator.loop import LoopOptions
from stowage.operator.run_options import EngineDependencies, EngineFactory, RunOptions
from stowage.operator.serving.delegated_access import AccessOptions
from stowage.operator.serving.server import ServingOptions

__all__ = [
    "AccessOptions",
    "ConfigMapOptions",
    "ConfigMapReference",
    "EngineDependencies",
    "EngineFactory",
    "LeaderElectionOptions",
    "LoadedConfiguration",
    "LoopOptions",
    "RunOptions",
    "ServingOptions",
    "configure_logging",
    "parse_reference",
    "read_config_map",
    "run",
    "run_blocking",
]
