"""``python -m scheduler.cli`` is ``stowage``."""

from scheduler.cli.main import app

if __name__ == "__main__":
    app(prog_name="stowage")
