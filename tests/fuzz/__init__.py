"""Inputs nobody means to send, in numbers: ``python -m tests.fuzz --texts N --objects N --seed S``.

`texts` and `objects` make inputs from a seeded generator, so that one that finds something can be
made again; `trials` says what must hold for any input; `test_fuzz` runs a few and keeps each input
that ever broke something.
"""
