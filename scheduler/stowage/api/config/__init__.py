"""KubeSchedulerConfiguration v1: types, defaults, loading, validation and live changes.

The package takes and returns builtins; it reads no files. Plugin arguments are decoded where the
plugins are known (`stowage.framework`).
"""
