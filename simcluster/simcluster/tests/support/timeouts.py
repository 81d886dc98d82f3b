"""How long tests wait for what other processes and tasks do."""

from __future__ import annotations

WAIT_TIMEOUT_S = 180.0
"""Only what hangs takes as long: a machine that is busy with other things may take a minute."""
