"""Questions about devices: which request of which claim fails on a node, and what would help."""
