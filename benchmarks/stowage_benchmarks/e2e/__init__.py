"""``stowage bench e2e``: binds per second and cost per pod over an API server."""
