"""How to call kubectl here."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path


def kubectl_command() -> str:
    """``kubectl``, or the one installed beside this Python where there is none on the PATH."""
    beside = Path(sys.executable).parent / "kubectl"
    if shutil.which("kubectl") is None and beside.exists():
        return str(beside)
    return "kubectl"
