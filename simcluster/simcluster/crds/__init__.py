"""CustomResourceDefinitions and the kinds they define."""
