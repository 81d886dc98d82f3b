"""The real scheduler and a simulated cluster, with faults between and around them."""
