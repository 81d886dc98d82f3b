"""Storage controllers: binding, provisioning, attachment and protection of volumes."""
