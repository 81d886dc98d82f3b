"""A process may be started without stdin, stdout or stderr."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import os, socket, sys
from stowage.cli.standard_streams import open_standard_streams
open_standard_streams()
connection = socket.socket()
print("logged", file=sys.stderr, flush=True)
sys.exit(0 if connection.fileno() > 2 else 1)
"""


def test_no_connection_gets_the_file_descriptor_of_a_missing_stderr() -> None:
    command = ["sh", "-c", 'exec "$0" -c "$1" 2>&- <&-', sys.executable, SCRIPT]
    assert subprocess.run(command, check=False).returncode == 0
