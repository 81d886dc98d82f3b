"""The metrics: definitions, collection and exposition.

`definitions` has name, help, labels and buckets of the metrics of kube-scheduler, `own_definitions`
those of Stowage alone. `Metrics` counts in plain dicts and lists on the scheduling path, and the
collectors make Prometheus' metric families at each scrape. The other collectors read the state of
their parts.

`stowage.operator.process` makes the collectors; the dispatcher, the engine and the API client
report to `Metrics`.

Rejected: prometheus_client's own histograms on the scheduling path (4.7 µs per observation against
0.4 µs).
"""
