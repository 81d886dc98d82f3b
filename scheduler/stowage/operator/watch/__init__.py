"""Watches: reflectors list and watch the cluster and pass events to the engine."""
