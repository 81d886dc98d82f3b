"""Traces of requests to the API server."""

from __future__ import annotations

import aiohttp
from opentelemetry.trace import SpanContext, SpanKind, StatusCode, TraceFlags, Tracer


def request_tracer(tracer: Tracer) -> aiohttp.ClientMiddlewareType:
    """A middleware that makes a span of each request, until the answer's headers are there.

    The header ``traceparent`` continues the trace at the API server. Watches are not traced.
    """

    async def trace(
        request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        if "watch" in request.url.query:
            return await handler(request)
        template = path_template(request.url.path)
        with tracer.start_as_current_span(
            f"{request.method} {template}",
            kind=SpanKind.CLIENT,
            attributes={
                "http.request.method": request.method,
                "url.template": template,
                "server.address": request.url.host or "",
            },
        ) as span:
            request.headers["traceparent"] = traceparent(span.get_span_context())
            response = await handler(request)
            span.set_attribute("http.response.status_code", response.status)
            if response.status >= 400:
                span.set_status(StatusCode.ERROR)
            return response

    return trace


def traceparent(context: SpanContext) -> str:
    """The header of W3C Trace Context that names a span as the parent.

    Without the flag for random trace IDs: the Go library of kube-apiserver then refuses the header.
    """
    flags = context.trace_flags & TraceFlags.SAMPLED
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{flags:02x}"


def path_template(path: str) -> str:
    """The path with placeholders for the namespace and the name of an object.

    Examples:
        >>> path_template("/api/v1/namespaces/shop/pods/web-1/binding")
        '/api/v1/namespaces/{namespace}/pods/{name}/binding'
        >>> path_template("/apis/storage.k8s.io/v1/storageclasses/fast")
        '/apis/storage.k8s.io/v1/storageclasses/{name}'
    """
    segments = path.split("/")
    roots = [index for index, segment in enumerate(segments) if segment in ("api", "apis")]
    if not roots:
        return path
    # The server may be behind a prefix; a group follows "apis".
    resource = roots[0] + (2 if segments[roots[0]] == "api" else 3)
    if segments[resource : resource + 1] == ["namespaces"] and len(segments) > resource + 2:
        segments[resource + 1] = "{namespace}"
        resource += 2
    if len(segments) > resource + 1:
        segments[resource + 1] = "{name}"
    return "/".join(segments)
