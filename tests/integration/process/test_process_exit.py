"""The process ends although a thread hangs."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import asyncio, time
from types import SimpleNamespace
from stowage.operator import app
from stowage.operator.logging.setup import configure_logging

async def run(_options):
    asyncio.get_running_loop().run_in_executor(None, time.sleep, 600)
    app.log.info("last log line")
    return 3

configure_logging(json=True)
app.run = run
app.run_blocking(SimpleNamespace(owns_process=True))
"""


def test_a_hanging_thread_does_not_keep_the_process_from_exiting() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, check=False, timeout=60
    )
    assert ended.returncode == 3
    assert b"last log line" in ended.stderr
