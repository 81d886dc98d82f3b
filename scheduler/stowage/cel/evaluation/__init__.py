"""From a typed tree to closures: the planner, and what its closures do.

Evaluation is a call of nested Python closures over a `Frame`. Costs are those that the cost tracker
of cel-go counts for its own optimized plan, so that an evaluation ends at the same limit.
"""
