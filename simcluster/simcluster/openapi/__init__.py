"""OpenAPI documents of every served kind."""
