"""Authentication and authorization: users, tokens, roles and reviews."""
