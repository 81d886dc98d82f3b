"""The configuration's ConfigMap: read at the start, followed for edits, reported with Events.

A valid edit goes through the inbox like every other event, so the engine changes its configuration
between two cycles. An invalid edit changes nothing; `LiveConfiguration` reports it in the log, the
metrics, an Event on the ConfigMap and ``/readyz?verbose`` until a valid one replaces it.

`stowage.operator.process` and the Kopf watch of the ConfigMap call it; `stowage.cli` reads the
first version before the event loop starts.
"""
