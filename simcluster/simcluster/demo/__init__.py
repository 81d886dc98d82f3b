"""The demo: a cluster, a scheduler, sample manifests, and a checked report.

``sample`` reads the manifests, ``scenario`` runs them, ``outcome`` checks the result and ``report``
prints it. All data of the report come from the API server.
"""
