"""A scheduler process whose clock runs faster: ``python -m ... KUBECONFIG FACTOR``."""

from __future__ import annotations

import asyncio
import sys
from contextlib import AsyncExitStack

from msgspec.structs import replace

from stowage.api.config.loading import load_configuration
from stowage.cli.composition import run_options
from stowage.operator.client.connection import Connection
from stowage.operator.clock import Clock, monotonic
from stowage.operator.environment import REAL_ENVIRONMENT
from stowage.operator.lease import LeaderElectionOptions
from stowage.operator.logging.setup import configure_logging
from stowage.operator.process import Process
from tests.support.integration.running_scheduler import CONFIGURATION

ELECTION = LeaderElectionOptions(
    identity="accelerated",
    lease_name="stowage",
    lease_namespace="kube-system",
    lease_duration_s=300.0,
    renew_deadline_s=240.0,
    retry_period_s=2.0,
)
"""A lease that survives the outages of the tests."""


def accelerated_clock(factor: float) -> Clock:
    """A clock on which time passes that much faster."""
    return replace(
        Clock(),
        monotonic=lambda: monotonic() * factor,
        sleep=lambda seconds: asyncio.sleep(seconds / factor),
    )


async def main(kubeconfig: str, factor: float) -> int:
    """Run until SIGTERM; returns the exit status."""
    clock = accelerated_clock(factor)
    options = run_options(load_configuration(CONFIGURATION), None, None, 300.0)
    options = replace(options, leader_election=ELECTION)
    connection = Connection(kubeconfig)
    async with AsyncExitStack() as cleanup:
        await connection.open()
        cleanup.push_async_callback(connection.close)
        process = Process(options, connection, replace(REAL_ENVIRONMENT, clock=clock))
        return await process.run(cleanup)


if __name__ == "__main__":
    configure_logging()
    sys.exit(asyncio.run(main(sys.argv[1], float(sys.argv[2]))))
