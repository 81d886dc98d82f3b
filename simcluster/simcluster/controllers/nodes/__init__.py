"""Node controllers: lifecycle, taints, eviction and garbage collection of pods."""
