"""Figures of speed that were measured once, and how today's compare.

``python -m tests.perf`` measures anew and prints how each figure relates to the recorded one, after
both were divided by the time a calibration loop took beside them: so machines of different speed
can be compared. It judges nothing, for timings are noisy: who changed something for speed reads it.
``python -m tests.perf --record`` replaces the recorded figures.
"""
