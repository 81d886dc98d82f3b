"""Kubernetes' protobuf encoding of request bodies."""
