"""The log level, which may change while the process runs.

Modules keep their loggers, and structlog keeps what a logger was made of. So the level is changed
in the class of all loggers: a line below the level costs a call of an empty function, as always.
"""

from __future__ import annotations

import logging

import structlog

QUIET_LIBRARIES = ("kopf", "aiohttp", "asyncio", "kubernetes")
DEBUG_VERBOSITY = 4
"""From this ``-v`` on (klog's debug level), everything is logged, including libraries' lines."""

SCORES_VERBOSITY = 10
"""From this ``-v`` on, the best nodes of each attempt are logged, as in kube-scheduler."""

FilteringLogger = type(
    "FilteringLogger", (structlog.make_filtering_bound_logger(logging.INFO),), {}
)
"""The class of all loggers of this process."""


class InForce:
    """The ``-v`` in force."""

    verbosity = 0


def set_verbosity(verbosity: int) -> None:
    """Log from now on what klog's ``-v`` of this value logs."""
    level = logging.DEBUG if verbosity >= DEBUG_VERBOSITY else logging.INFO
    for name, method in vars(structlog.make_filtering_bound_logger(level)).items():
        if not name.startswith("__"):
            setattr(FilteringLogger, name, method)
    InForce.verbosity = verbosity
    logging.getLogger().setLevel(level)
    # Kopf logs a line per event, which costs as much as the event itself.
    library_level = level if level == logging.DEBUG else logging.WARNING
    for name in QUIET_LIBRARIES:
        logging.getLogger(name).setLevel(library_level)


def logs_scores() -> bool:
    """Whether the scores of each attempt are logged."""
    return InForce.verbosity >= SCORES_VERBOSITY
