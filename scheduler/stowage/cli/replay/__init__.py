"""``stowage replay``: repeats a recording and answers questions about it.

`command` has the flags, `engines` makes the engines, `repetition` repeats the calls, and `report`
is the answer without a question. `comparison` lives through a recording with another configuration.
"""

from stowage.cli.replay.command import app

__all__ = ["app"]
