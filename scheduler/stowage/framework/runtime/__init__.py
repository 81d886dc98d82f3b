"""The framework of one profile: runs its plugins at every extension point."""
