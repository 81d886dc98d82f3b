"""Admission of built-in kinds: fields that depend on other objects, and what an update keeps."""
