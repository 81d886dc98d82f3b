"""The HTTP server of the console: access, static files, and the endpoints."""
