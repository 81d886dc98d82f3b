"""``stowage bench core``: cost per pod inside the engine, without I/O."""
