"""kube-scheduler's metrics: definitions, collection and exposition."""
