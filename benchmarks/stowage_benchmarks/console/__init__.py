"""``stowage bench console``: what the answers and the stream of the console cost."""
