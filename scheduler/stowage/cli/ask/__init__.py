"""Commands that answer questions about a cluster and change nothing in it.

`source` reads the cluster, `output` writes answers as table, JSON or YAML; a module for each
command.
"""
