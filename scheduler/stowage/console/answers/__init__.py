"""The answers of the console as values; each is computed by `stowage.analysis`.

Answers about all nodes are columns: arrays with an entry for each node. Their JSON has camelCase
names.
"""
