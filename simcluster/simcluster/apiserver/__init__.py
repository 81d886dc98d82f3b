"""The HTTP side of the API server: requests in, answers out."""
