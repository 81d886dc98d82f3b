"""``stowage console``: the page that shows a cluster; `session` connects it to its source."""

from stowage.cli.console.command import app

__all__ = ["app"]
