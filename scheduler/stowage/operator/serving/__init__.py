"""The HTTPS endpoints: health, metrics, configuration and debug state, as kube-scheduler's.

`Server` answers from `Content`, callables that read the parts of the process. `DelegatedAccess`
asks the API server who may read. `ServingCertificate` reloads its files, and `ConnectionLimits`
limits the connections.

Invariants:

- Only the always allowed paths (health by default) are served without the API server's permission.
- A request never changes the state of the scheduler; only PUT ``/debug/flags/v`` changes anything,
  the log level.
- Clients cannot exhaust memory or file descriptors: the number of connections, and the time for a
  request's head and for the TLS handshake, are limited. aiohttp itself sets no such limits.

Only `stowage.operator.process` makes a `Server`.
"""
