"""API objects: frozen structs with the fields that scheduling reads."""
