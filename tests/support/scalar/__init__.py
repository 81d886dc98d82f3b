"""Scalar twins: plugins in plain Python that decide about one node at a time."""
