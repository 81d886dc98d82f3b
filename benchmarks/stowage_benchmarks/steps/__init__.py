"""``stowage bench steps``: the longest step of the event loop with objects made to be slow."""
