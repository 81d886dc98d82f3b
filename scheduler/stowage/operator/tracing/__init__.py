"""OpenTelemetry traces of scheduling attempts and of requests to the API server.

`stowage.operator.app` makes `Traces` if the configuration has a sampling rate above 0. Nothing else
imports OpenTelemetry, which is an optional dependency. Without traces the scheduler pays a
comparison per attempt and per instruction.

A trace of an attempt, with the durations of `stowage.framework.timings`::

    Scheduling                  the attempt, until the pod is bound or the attempt has failed
      SchedulingCycle           PreFilter to Permit, or to PostFilter
        PreFilter, Filter, ...  one span for each extension point that ran
      BindingCycle              until the binding has succeeded or failed
        PreBind, PostBind
        POST /api/v1/...        requests, whose header ``traceparent`` continues the trace

Other requests are traces of their own. Watches are not traced: they have no end.

Rejected: OTLP over HTTP, 17 MB smaller. The endpoint of kube-apiserver and the kubelet is one for
gRPC, and the same value should work here.
"""
