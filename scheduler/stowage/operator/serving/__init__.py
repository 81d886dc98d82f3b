"""HTTPS endpoints: health, metrics, configuration, debug state and access control."""
