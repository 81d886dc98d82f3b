"""``python -m stowage``: the program, where its folder is not in ``PATH``."""

from __future__ import annotations

from stowage.cli.program import main

if __name__ == "__main__":
    main("python -m stowage")
