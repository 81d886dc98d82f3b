"""`stowage bench steady`: the cost and the latency of pods that come at a constant rate."""
