"""Runs experiments of the simulation, compares policies, and finds better ones.

Purpose. An experiment is a pure function of its trace, policy and seed (`analysis.simulation`).
This room has what is not pure about many of them: processes, files, progress, reports, the search.

Invariants.

- The outcomes of a sweep do not depend on where it runs, on the number of workers, or on an
  interruption that was resumed.
- What has ended is on the disk, if a results file was asked for, before it is shown as done.
- An experiment that raises, or that kills its worker, ends alone.
- Dask, Optuna, Plotly's script and pyarrow are an optional extra. They are imported where they are
  used, and a missing one is an error that names the extra.

Callers. The commands ``simulate`` and ``tune``.

Rejected: a thread or process pool of our own beside Dask, as it would be a second way to run the
same thing; and Dask's ``scatter`` for traces, as what one worker holds is lost with it.
"""
