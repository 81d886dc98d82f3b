"""API objects: frozen structs with the fields that scheduling reads.

A field that is added here is decoded for every object, so a struct has no field that nothing reads.
"""
