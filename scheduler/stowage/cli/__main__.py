"""``python -m stowage.cli`` is ``stowage``."""

from stowage.cli.program import main

if __name__ == "__main__":
    main("stowage")
