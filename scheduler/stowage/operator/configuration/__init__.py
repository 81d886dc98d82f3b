"""The live configuration: read from a ConfigMap and followed while running."""
