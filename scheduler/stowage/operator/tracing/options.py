"""Options of traces, without an import of OpenTelemetry."""

from __future__ import annotations

from importlib.util import find_spec

import msgspec


class TracingOptions(msgspec.Struct, frozen=True):
    """Where traces go, and how many are made.

    Attributes:
        endpoint: The collector, as a gRPC name: ``localhost:4317``, ``dns:///collector:4317``.
        sampling_rate_per_million: How many of a million attempts or requests are traced.
    """

    endpoint: str
    sampling_rate_per_million: int


def is_opentelemetry_installed() -> bool:
    """Whether the packages of the extra ``tracing`` are there."""
    try:
        return find_spec("opentelemetry.exporter.otlp.proto.grpc") is not None and (
            find_spec("opentelemetry.sdk") is not None
        )
    except ModuleNotFoundError:
        return False
