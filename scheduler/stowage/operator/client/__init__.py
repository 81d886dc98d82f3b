"""The client of the API server: connection, credentials, rate limit, timeouts and retries.

`ApiClient` sends and receives bytes; callers decode what they need with msgspec. `GatedClient`
is the client for writes: it sends none without the lease. Both share the `Connection`, which
reads its configuration with `kubernetes.aio.config`.

Invariants:

- A refusal is an `ApiError`; a missing answer is one of `LOST_ANSWER_ERRORS`. Callers treat the
  second as unknown, never as failed.
- Every request has a time limit.
- Redirects are not followed, and a page that is not JSON is not an answer (`is_api_answer`).

Any part of the shell may call it, and so may the tools of other distributions.

Rejected: the generated client models of the ``kubernetes`` package. A V1Pod takes 393 µs to decode,
a msgspec struct 1.4 µs.
"""
