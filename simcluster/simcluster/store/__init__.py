"""The object store: revisions, history, watches and selection."""
