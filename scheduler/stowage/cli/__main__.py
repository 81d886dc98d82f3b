"""``python -m stowage.cli`` is ``stowage``."""

from stowage.cli.main import app

if __name__ == "__main__":
    app(prog_name="stowage")
