"""KubeSchedulerConfiguration: types, defaults, loading and validation."""
