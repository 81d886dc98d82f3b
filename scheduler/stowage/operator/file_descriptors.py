"""Room for connections: the limit on open files is raised, or the scheduler does not start.

With too few descriptors each new connection fails as if the API server were away, that of the Lease
included, and a burst of bindings or of clients of the endpoints loses the lease.
"""

from __future__ import annotations

import resource

NEEDED = 768
"""Descriptors for all connections that there may be at once: writes, watches and endpoints."""


def make_room() -> None:
    """Raise the limit on open files to the hard limit, as Go's runtime does for kube-scheduler.

    Raises:
        OSError: The hard limit is too low.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < NEEDED:
        raise OSError(
            f"the limit on open files is {hard} (expected at least {NEEDED}: see ulimit -n, or "
            "LimitNOFILE of systemd)"
        )
    if soft == resource.RLIM_INFINITY:
        return
    enough = max(soft, NEEDED)
    try:
        wanted = enough if hard == resource.RLIM_INFINITY else hard
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except ValueError:  # macOS: the kernel's own limit is lower than the hard one
        resource.setrlimit(resource.RLIMIT_NOFILE, (enough, hard))
