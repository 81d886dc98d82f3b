"""Recorded performance figures, and a comparison with fresh ones.

``python -m tests.perf`` measures again and prints the ratio of each figure to the recorded one.
Both are divided by the time of a calibration loop that ran beside them, so that machines of
different speed can be compared. No ratio fails, because timings are noisy: read them after a change
for performance. ``python -m tests.perf --record`` replaces the recorded figures.
"""
