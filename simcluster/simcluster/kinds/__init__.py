"""The built-in kinds: how each is served, defaulted and admitted."""
