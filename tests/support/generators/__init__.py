"""Random clusters, nodes and pods."""
