"""Decoding of API objects and configuration; errors name object, field, value and expectation.

`decode` is fast and tolerant: the API server has validated its objects, and one invalid object must
not stop its list or watch. `strict_decoding` is for hand-written configuration: every unknown field
and wrong type is an error, and all errors are reported at once.
"""
