"""Parts of the demo and the benchmarks: child processes, objects to create, and what to observe."""
