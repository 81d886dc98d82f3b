"""Kopf: watches the pending pods and the ConfigMap inside the scheduler's event loop."""
