"""Fuzzing with random invalid inputs: ``python -m tests.fuzz --texts N --objects N --seed S``.

`texts` and `objects` generate inputs from a seed, so that a failing input can be generated again.
`trials` checks what must hold for any input. `test_fuzz` runs a few inputs, and every input that
ever failed.
"""
