"""``stowage bench questions``: what answers about a large cluster cost."""
