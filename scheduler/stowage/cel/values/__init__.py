"""The values of CEL: what they are, when they are equal, how they are ordered.

CEL's ``int`` is Python's ``int``, ``double`` is ``float``; ``string``, ``bytes``, ``bool`` and
``null`` are ``str``, ``bytes``, ``bool`` and ``None``; a list is a ``list`` that is never changed
once an expression can see it. The other types have classes here.
"""
