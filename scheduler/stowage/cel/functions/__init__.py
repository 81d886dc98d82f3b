"""The functions of CEL and of Kubernetes' libraries, with their costs.

Each module has a list ``FUNCTIONS`` of overloads: signatures with implementations. An
implementation gets values of the declared types only.
"""
