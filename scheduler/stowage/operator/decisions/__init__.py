"""The record of decisions: kept in memory, served over HTTPS, written to files.

The engine attaches what is worth keeping to each `AttemptResult`, in a form that costs little to
make and to keep. `DecisionStore` keeps the last ones. `DecisionLog` writes all of them to files, in
a thread. Both turn an attempt into a `Decision`, which is what users read, only when it is needed.
"""
