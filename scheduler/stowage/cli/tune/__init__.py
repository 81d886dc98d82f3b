"""``stowage tune``: finds better weights and arguments of score plugins on a workload.

`command` has the flags, `task` the experiments of a search, `finding` what was found and the
configuration file that says so, `plots` the report.
"""

from stowage.cli.tune.command import app

__all__ = ["app"]
