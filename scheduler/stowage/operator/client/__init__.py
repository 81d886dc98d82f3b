"""The API server's client: connection, credentials, rate limit, timeouts and retries."""
