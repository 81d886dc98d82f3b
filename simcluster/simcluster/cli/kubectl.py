"""The path of kubectl."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path


def kubectl_command() -> str:
    """``kubectl``, or the one that is installed beside this Python if PATH has none."""
    beside = Path(sys.executable).parent / "kubectl"
    if shutil.which("kubectl") is None and beside.exists():
        return str(beside)
    return "kubectl"
