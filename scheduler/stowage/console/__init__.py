"""Room ``console``: the page that shows a cluster and answers questions about it, and its server.

Structure: `clusters` are what is asked about (a running cluster, files, a recording), as a `Moment`
each. `answers` turn what `stowage.analysis` finds into values whose JSON the page reads, nodes as
columns. `decisions` keep the feed and its numbers. `stream` tells open pages what changed.
`serving` is the HTTP server: access, static files, endpoints. `static` has the built page.

How it stays quick: what takes long is answered in a forked child, which has the cluster as it was
when it was asked; the event loop goes on. An answer is made once for all pages that ask while the
cluster is the same. The stream says at most four times a second which decisions there were, and
shows a sample of them; each message is encoded once for all pages.

Invariants:
    - Nothing is written to the cluster; the console gets, lists and watches.
    - Every request needs the token; the server listens on 127.0.0.1 only.
    - Memory is bounded: queues of pages, kept decisions, cached answers, buckets of time.
    - Reasoning is computed by `stowage.analysis` only, so it equals ``stowage explain`` and
      ``stowage what-if``.

Callers: ``cli`` makes a source, connects it to the watches of ``operator``, and runs `Console`.
The console does not know the operator.

Rejected: worker threads for answers (the watches change the cluster beneath them, and numpy and
Python share one lock); a WebSocket (nothing goes from the page to the server but questions, and
EventSource reconnects by itself).
"""
