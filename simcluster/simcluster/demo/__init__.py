"""The demo: a cluster, a scheduler, sample manifests, and a report that can fail.

``sample`` reads the manifests beside it, ``scenario`` runs them, ``progress`` shows how far it is,
``outcome`` judges the result and ``report`` prints it. Everything in the report was seen through
the API server.
"""
